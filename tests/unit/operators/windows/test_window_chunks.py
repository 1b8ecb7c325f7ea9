"""Chunks of several kinds of rows against the rows themselves."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from headwater.operators.memory.partials import Entries
from headwater.operators.operator import NEVER
from headwater.operators.windows.window_chunks import chunk_rows, decode, decode_watermark, encode
from soaking import examples

PANE = pa.schema([("k", pa.string()), ("n.count", pa.int64())])
COUNT = pa.schema([("n", pa.int64())])
PANES = st.lists(st.tuples(st.none() | st.sampled_from("ab"), st.none() | st.integers(0, 9)), max_size=6)
COUNTS = st.lists(st.none() | st.integers(0, 9), max_size=6)


def parts(panes: list[tuple[str | None, int | None]], counts: list[int | None]) -> dict[str, pa.Table]:
    columns = [[pane[0] for pane in panes], [pane[1] for pane in panes]]
    return {"pane": pa.table(columns, schema=PANE), "count": pa.table([counts], schema=COUNT)}


@examples(60)
@given(st.lists(st.tuples(PANES, COUNTS, st.integers(-9, 9)), min_size=1, max_size=4))
def test_rows_that_were_told_are_heard_in_their_order_also_of_several_chunks(
    steps: list[tuple[list[tuple[str | None, int | None]], list[int | None], int]],
) -> None:
    chunk = pa.concat_tables([encode(parts(panes, counts), clock) for panes, counts, clock in steps])
    expected = parts([pane for step in steps for pane in step[0]], [n for step in steps for n in step[1]])
    for kind, rows in expected.items():
        assert decode(chunk, kind).to_pylist() == rows.to_pylist()
        assert decode(chunk, kind).schema.names == rows.schema.names
    assert decode_watermark(chunk) == max(clock for _, _, clock in steps)


def test_the_clock_is_always_told() -> None:
    chunk = encode(parts([], []), 5)
    assert len(chunk) == 1
    assert decode_watermark(chunk) == 5
    assert decode(chunk, "pane").equals(PANE.empty_table())
    assert decode_watermark(chunk.slice(0, 0)) == NEVER


def test_entries_are_placed_by_the_number_that_is_not_the_key() -> None:
    entries = Entries(np.array([7, 8]), np.array([1, 2]), pa.table({"n": [5, 6]}))
    assert chunk_rows(entries).to_pylist() == [{"_place": 7, "n": 5}, {"_place": 8, "n": 6}]
    assert chunk_rows(entries, by_major=False)["_place"].to_pylist() == [1, 2]
