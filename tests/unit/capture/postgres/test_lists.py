"""Arrays become lists."""

from __future__ import annotations

import struct

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from headwater.capture.postgres import binary_columns, lists, text_columns
from pgoutput_kit import cells, text_cells

TEXTS = st.lists(
    st.none() | st.lists(st.none() | st.text(st.characters(codec="utf-8", exclude_characters="\0")))
)


def encoded(value: list[str | None] | None) -> bytes | None:
    if value is None:
        return None
    if not value:
        return struct.pack(">iii", 0, 0, 25)
    data = [None if each is None else each.encode() for each in value]
    parts = [struct.pack(">i", -1) if each is None else struct.pack(">i", len(each)) + each for each in data]
    return struct.pack(">iiiii", 1, 1, 25, len(value), 1) + b"".join(parts)


def written(value: list[str | None] | None) -> str | None:
    """Write an array with quotes around everything, as PostgreSQL does where there is need."""
    if value is None:
        return None
    quoted = ["NULL" if v is None else '"' + v.replace("\\", "\\\\").replace('"', '\\"') + '"' for v in value]
    return "{" + ",".join(quoted) + "}"


@given(TEXTS)
def test_arrays_of_texts_come_out_as_they_went_in(values: list[list[str | None] | None]) -> None:
    array, unfit = lists.from_binary(binary_columns.texts)(cells([encoded(value) for value in values]))
    array.validate(full=True)
    assert (array.to_pylist(), unfit) == (values, {})


@given(TEXTS)
def test_arrays_that_are_written_come_out_as_they_went_in(values: list[list[str | None] | None]) -> None:
    array, unfit = lists.from_text(binary_columns.texts)(text_cells([written(value) for value in values]))
    array.validate(full=True)
    assert (array.to_pylist(), unfit) == (values, {})


def test_numbers_are_written_without_quotes_and_bounds_are_left_out() -> None:
    read = lists.from_text(text_columns.numbers(pa.int32()))
    array, unfit = read(text_cells(["{1,NULL,3}", "{}", None, "[0:1]={7,8}"]))
    assert (array.to_pylist(), unfit) == ([[1, None, 3], [], None, [7, 8]], {})


def test_an_array_of_two_dimensions_is_told() -> None:
    array, unfit = lists.from_text(text_columns.numbers(pa.int32()))(text_cells(["{{1},{2}}", "{3}"]))
    assert (array.to_pylist(), unfit) == ([None, [3]], {0: "{{1},{2}}"})
    wide = struct.pack(">iiiiiii", 2, 0, 23, 1, 1, 1, 1) + struct.pack(">ii", 4, 9)
    array, unfit = lists.from_binary(binary_columns.numbers("i4", pa.int32()))(cells([wide]))
    assert (array.to_pylist(), unfit) == ([None], {0: "an array of 2 dimensions"})


def test_an_array_with_an_element_that_does_not_fit_is_told() -> None:
    read = lists.from_text(text_columns.dates)
    array, unfit = read(text_cells(["{2024-01-02}", "{2024-01-02,infinity}"]))
    assert array.is_valid().to_pylist() == [True, False]
    assert unfit == {1: "infinity"}
