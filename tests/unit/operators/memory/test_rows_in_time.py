"""Rows in the order of time, against a list."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from headwater.operators.event_time import FOREVER
from headwater.operators.memory.rows_in_time import RowsInTime
from soaking import examples

SCHEMA = pa.schema([("n", pa.int64())])


@examples(60)
@given(st.lists(st.tuples(st.lists(st.integers(0, 9), max_size=6), st.integers(0, 4)), max_size=8))
def test_rows_leave_in_the_order_of_time_and_then_of_arrival(steps: list[tuple[list[int], int]]) -> None:
    rows, held, clock, number = RowsInTime(SCHEMA), list[tuple[int, int]](), 0, 0
    for ahead, further in steps:
        new = [(clock + each, number + place) for place, each in enumerate(ahead)]
        number += len(new)
        at, slots = np.array([at for at, _ in new], np.int64), np.array([n % 3 for _, n in new], np.int64)
        rows.add(pa.table([[n for _, n in new]], schema=SCHEMA), at, slots)
        held = sorted(held + new)
        assert rows.first() == (held[0][0] if held else None)
        clock += further
        assert rows.until(clock)["n"].to_pylist() == [n for at, n in held if at < clock]
        rows.drop(clock)
        held = [each for each in held if each[0] >= clock]
    assert rows.until(FOREVER)["n"].to_pylist() == [n for _, n in held]
    assert len(rows) == len(held)
