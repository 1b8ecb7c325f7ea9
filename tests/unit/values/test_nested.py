"""What is inside columns, however deep: NOT NULL fields, keys of maps, and times that can be read."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater import schema, topic
from headwater.errors import RowError
from headwater.values.nested import check_within, compact, unknown_field

TOPIC = topic.create("t", "c BIGINT")
STRICT = schema.parse("c ARRAY<STRUCT<x: INT NOT NULL>>").field(0)
MAPS = schema.parse("c MAP<STRING, INT>").field(0)
LOOSE = pa.list_(pa.struct([("x", pa.int32())]))

lists = st.none() | st.lists(
    st.none() | st.fixed_dictionaries({"x": st.none() | st.integers(0, 9)}), max_size=3
)
maps = st.none() | st.lists(st.tuples(st.sampled_from("ab"), st.none() | st.integers(0, 9)), max_size=3)


def refused(column: pa.Array, field: pa.Field) -> int | None:
    """Return the row that is refused, if any."""
    try:
        check_within(column, field, TOPIC)
    except RowError as error:
        assert error.row is not None
        return error.row
    return None


def first(rows: list[Any], is_bad: Any) -> int | None:
    return next((number for number, row in enumerate(rows) if row is not None and is_bad(row)), None)


@given(st.lists(lists, max_size=5), st.integers(0, 2))
def test_the_first_null_in_a_field_that_is_not_null_is_found_with_its_row(rows: list[Any], skip: int) -> None:
    column = pa.array(rows, LOOSE).slice(skip)
    wanted = first(rows[skip:], lambda row: any(each is not None and each["x"] is None for each in row))
    assert refused(column, STRICT) == wanted


@given(st.lists(maps, max_size=5), st.integers(0, 2))
def test_the_first_map_with_a_key_twice_is_found_with_its_row(rows: list[Any], skip: int) -> None:
    column = pa.array(rows, MAPS.type).slice(skip)
    wanted = first(rows[skip:], lambda row: len({key for key, _ in row}) < len(row))
    assert refused(column, MAPS) == wanted


def test_a_time_in_no_year_is_found_within_a_map_and_its_row_is_the_rows() -> None:
    field = schema.parse("c MAP<STRING, ARRAY<TIMESTAMP>>").field(0)
    far = pa.array([0, 0, 253_402_300_800_000_000]).cast(schema.TIMESTAMP)
    items = pa.ListArray.from_arrays([0, 1, 3], far)
    column = pa.MapArray.from_arrays([0, 1, 1, 2], pa.array(["a", "a"]), items)
    assert refused(column, field) == 2
    assert refused(column.slice(0, 2), field) is None


@given(st.lists(maps, max_size=5), st.integers(0, 4))
def test_compacted_a_map_has_its_own_entries_alone(rows: list[Any], skip: int) -> None:
    column = compact(pa.array(rows, MAPS.type).slice(skip))
    left = rows[skip:]
    assert column.to_pylist() == left
    assert column.offset == 0
    assert len(column.keys) == sum(len(row) for row in left if row is not None)


def test_an_unknown_field_is_told_with_its_path_and_what_was_meant() -> None:
    kind = pa.struct([("street", pa.string()), ("city", pa.string())])
    error = unknown_field("address", "stret", kind, TOPIC, row=4)
    assert error.message == 'topic "t" has no field "address.stret"'
    assert (error.hint, error.row) == ('did you mean "street"?', 4)
    assert unknown_field("address", "zzz", kind, TOPIC).hint == 'fields of "address": street, city'


@pytest.mark.parametrize("kind", ["ARRAY<STRUCT<x: INT>>", "BIGINT", "STRUCT<x: STRUCT<y: STRING>>"])
def test_where_nothing_is_strict_nulls_may_be_anywhere(kind: str) -> None:
    field = schema.parse(f"c {kind}").field(0)
    assert refused(pa.nulls(3, field.type), field) is None
