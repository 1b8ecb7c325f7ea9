"""Numbered rows against a list."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from headwater.operators.memory.numbered_rows import NOWHERE, NumberedRows
from soaking import examples

SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string())])


def rows(ids: list[int]) -> pa.Table:
    return pa.table({"id": ids, "name": [f"n{number}" for number in ids]}, schema=SCHEMA)


def ids(numbered: NumberedRows, numbers: list[int]) -> list[int | None]:
    found: list[int | None] = numbered.take(np.array(numbers, np.int64))["id"].to_pylist()
    return found


@examples(40)
@given(st.data(), st.lists(st.lists(st.integers(0, 99), max_size=20), max_size=12))
def test_a_row_keeps_its_number_whatever_is_added_later(data: st.DataObject, steps: list[list[int]]) -> None:
    numbered, held = NumberedRows(SCHEMA.empty_table()), list[int]()
    for step in steps:
        numbered.append(rows(step))
        held += step
        asked = data.draw(st.lists(st.integers(NOWHERE, len(held) - 1), max_size=15))
        assert len(numbered) == len(held)
        assert ids(numbered, asked) == [None if number == NOWHERE else held[number] for number in asked]


def test_a_row_that_is_nowhere_is_all_nulls_also_where_there_are_no_rows() -> None:
    taken = NumberedRows(SCHEMA.empty_table()).take(np.array([NOWHERE, NOWHERE]))
    assert taken.schema == SCHEMA
    assert taken.to_pylist() == [{"id": None, "name": None}] * 2


def test_nothing_asked_is_no_rows_of_the_same_columns() -> None:
    numbered = NumberedRows(rows([1, 2]))
    assert numbered.take(np.empty(0, np.int64)).equals(SCHEMA.empty_table())


def test_some_columns_are_taken_alone_and_in_the_order_asked_for() -> None:
    numbered = NumberedRows(rows([1]))
    numbered.append(rows([2, 3]))
    taken = numbered.take(np.array([2, NOWHERE, 0]), "name")
    assert taken.to_pylist() == [{"name": "n3"}, {"name": None}, {"name": "n1"}]


def test_many_small_steps_lie_in_few_parts() -> None:
    numbered = NumberedRows(SCHEMA.empty_table())
    for number in range(500):
        numbered.append(rows([number]))
    assert len(numbered._parts) <= 10
    assert ids(numbered, [499, 0, 250]) == [499, 0, 250]
