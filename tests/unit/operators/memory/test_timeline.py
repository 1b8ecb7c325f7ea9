from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from headwater.operators.memory.timeline import Timeline
from soaking import examples

SCHEMA = pa.schema([("at", pa.int64())])
TIMES = st.integers(0, 50)


def rows(times: list[int]) -> pa.Table:
    return pa.table({"at": pa.array(times, pa.int64())})


def listed(table: pa.Table) -> list[int]:
    return sorted(table["at"].to_pylist())


@examples(100)
@given(st.lists(st.lists(TIMES) | TIMES))
def test_rows_leave_in_the_order_of_their_times(moves: list[list[int] | int]) -> None:
    line, kept = Timeline(SCHEMA), list[int]()
    for move in moves:
        if isinstance(move, list):
            line.add(rows(move), np.array(move, np.int64))
            kept += move
        else:
            assert listed(line.until(move)) == sorted(at for at in kept if at < move)
            line.drop(move)
            kept = [at for at in kept if at >= move]
        assert listed(line.rows()) == sorted(kept)
        assert (len(line), line.first()) == (len(kept), min(kept, default=None))


def test_there_are_few_runs_however_many_rows_were_added() -> None:
    line = Timeline(SCHEMA)
    for at in range(1000):
        line.add(rows([at]), np.array([at]))
        line.drop(at - 500)
    assert len(line._runs) < 15


def test_what_was_dropped_is_soon_out_of_memory() -> None:
    line = Timeline(SCHEMA)
    line.add(rows(list(range(100_000))), np.arange(100_000))
    line.drop(90_000)
    assert sum(run.rows.get_total_buffer_size() for run in line._runs) < 200_000
