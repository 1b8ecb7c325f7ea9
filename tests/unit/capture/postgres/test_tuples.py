"""Tuples are taken apart column by column, all rows at once."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.capture.postgres.tuples import PADDING, UNCHANGED, Buffer, filled, split, split_copied
from headwater.errors import SourceUnavailable
from pgoutput_kit import UNCHANGED as NOT_SENT
from pgoutput_kit import Cell, cells, row

CELL = st.none() | st.binary(max_size=20) | st.just(NOT_SENT)
SENT = st.none() | st.binary(max_size=20)


def rows_of(cell: st.SearchStrategy[Cell]) -> st.SearchStrategy[list[list[Cell]]]:
    return st.integers(1, 5).flatmap(lambda width: st.lists(st.lists(cell, min_size=width, max_size=width)))


def joined(parts: list[bytes]) -> tuple[Buffer, np.ndarray]:
    """Put tuples one behind the other, with something before each."""
    data, start = b"", []
    for part in parts:
        data += b"??"
        start.append(len(data))
        data += part
    return Buffer(data + PADDING), np.array(start, np.int64)


@given(rows_of(CELL))
def test_every_cell_of_a_tuple_is_found(rows: list[list[Cell]]) -> None:
    buffer, start = joined([row(each) for each in rows])
    width = len(rows[0]) if rows else 3
    found = split(buffer, start, width)
    for number in range(width):
        column = found.columns[number]
        expected = [each[number] for each in rows]
        assert column.binary().to_pylist() == [None if value is NOT_SENT else value for value in expected]
        assert (column.kind == UNCHANGED).tolist() == [value is NOT_SENT for value in expected]
    assert found.end.tolist() == [at + len(row(each)) for at, each in zip(start.tolist(), rows, strict=True)]


@given(rows_of(SENT))
def test_every_cell_of_a_copied_row_is_found(rows: list[list[Cell]]) -> None:
    parts = [
        struct.pack(">h", len(each))
        + b"".join(struct.pack(">i", -1) if v is None else struct.pack(">i", len(v)) + v for v in each)
        for each in rows
    ]
    buffer, start = joined(parts)
    width = len(rows[0]) if rows else 3
    found = split_copied(buffer, start, width)
    for number in range(width):
        assert found.columns[number].binary().to_pylist() == [each[number] for each in rows]


def test_a_tuple_with_other_columns_than_its_table_is_refused() -> None:
    buffer, start = joined([row([b"1", b"2"])])
    with pytest.raises(SourceUnavailable, match="a row that does not fit its table"):
        split(buffer, start, 3)


def test_what_is_unchanged_is_taken_from_the_old_tuple() -> None:
    buffer, start = joined([row([b"old"]), row([NOT_SENT]), row([b"new"]), row([NOT_SENT])])
    old, new = split(buffer, start[:1], 1).columns[0], split(buffer, start[1:], 1).columns[0]
    mended = filled(new, old, np.array([0]))
    assert mended.binary().to_pylist() == [b"old", b"new", None]


def test_numbers_are_read_at_any_place() -> None:
    buffer = Buffer(b"?" + struct.pack(">iq", -7, 2**40) + PADDING)
    assert buffer.numbers("i4", np.array([1, 1])).tolist() == [-7, -7]
    assert buffer.numbers("i8", np.array([5])).tolist() == [2**40]


def test_cells_can_be_picked_and_begun_later() -> None:
    column = cells([b"xab", None, b"xc"])
    assert column.behind(1).binary().to_pylist() == [b"ab", None, b"c"]
    assert column.only(np.array([0, 2])).binary().to_pylist() == [b"xab", b"xc"]
