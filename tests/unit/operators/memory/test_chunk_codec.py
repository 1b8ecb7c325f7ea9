"""Chunks of several tables against the tables themselves, also when they were cut and put together again."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from headwater.operators.event_time import NEVER
from headwater.operators.memory.chunk_codec import decode, decode_watermark, encode, extra_column
from soaking import examples

LEFT = pa.schema([("id", pa.int64()), ("name", pa.string())])
RIGHT = pa.schema([("x", pa.float64())])
NAMED = st.lists(st.tuples(st.none() | st.integers(0, 9), st.none() | st.text("ab", max_size=2)), max_size=6)
NUMBERS = st.lists(st.tuples(st.none() | st.floats(allow_nan=False)), max_size=6)
CUTS = st.lists(st.integers(0, 14), max_size=4)


def table(schema: pa.Schema, rows: list[Any]) -> pa.Table:
    columns = [pa.array([row[n] for row in rows], field.type) for n, field in enumerate(schema)]
    return pa.table(columns, schema=schema)


def cut(chunk: pa.Table, places: list[int]) -> pa.Table:
    edges = [0, *sorted(min(place, len(chunk)) for place in places), len(chunk)]
    return pa.concat_tables([chunk.slice(low, high - low) for low, high in pairwise(edges)])


@examples(100)
@given(NAMED, NUMBERS, CUTS)
def test_the_rows_of_each_table_come_back_in_their_order_however_the_chunk_was_cut(
    left: list[Any], right: list[Any], places: list[int]
) -> None:
    tables = {"left": table(LEFT, left), "right": table(RIGHT, right)}
    marks = np.arange(len(left) + len(right))
    chunk = cut(encode(tables, 7, {"mark": marks}), places)
    assert decode(chunk, "left").to_pylist() == tables["left"].to_pylist()
    assert decode(chunk, "right").to_pylist() == tables["right"].to_pylist()
    assert extra_column(chunk, "left", "mark").tolist() == marks[: len(left)].tolist()
    assert extra_column(chunk, "right", "mark").tolist() == marks[len(left) :].tolist()
    assert decode_watermark(chunk) == 7


def test_a_chunk_without_rows_still_tells_the_clock() -> None:
    chunk = encode({"left": LEFT.empty_table()}, 12, {"mark": np.empty(0, np.int64)})
    assert len(chunk) == 1
    assert decode_watermark(chunk) == 12
    assert decode(chunk, "left").equals(LEFT.empty_table())
    assert len(extra_column(chunk, "left", "mark")) == 0


def test_of_several_chunks_the_latest_clock_counts_and_of_none_there_is_none() -> None:
    chunks = pa.concat_tables([encode({"left": LEFT.empty_table()}, clock) for clock in (3, 9, 5)])
    assert decode_watermark(chunks) == 9
    assert decode_watermark(chunks.slice(0, 0)) == NEVER


def test_a_row_of_nulls_is_a_row() -> None:
    chunk = encode({"left": table(LEFT, [(None, None)]), "right": RIGHT.empty_table()}, 0)
    assert decode(chunk, "left").to_pylist() == [{"id": None, "name": None}]
    assert decode(chunk, "right").to_pylist() == []
