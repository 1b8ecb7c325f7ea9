"""Values in order against a sorted list."""

from __future__ import annotations

import math
from datetime import date
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.operators.memory.sorted_multiset import SortedMultiset, comparable, restored
from soaking import examples

MANY = 3000
"""More than one run holds."""


@examples(60)
@given(st.data(), st.lists(st.lists(st.integers(0, 30), max_size=12), max_size=10))
def test_what_is_held_is_what_was_added_and_not_taken_out(
    data: st.DataObject, steps: list[list[int]]
) -> None:
    ranked, held = SortedMultiset(), list[int]()
    for step in steps:
        ranked.add(step)
        held = sorted([*held, *step])
        for value in data.draw(st.permutations(held))[: data.draw(st.integers(0, len(held)))]:
            ranked.remove(value)
            held.remove(value)
        assert len(ranked) == len(held)
        assert ranked.greatest(5) == held[::-1][:5]
        assert ranked.greatest(len(held) + 1) == held[::-1]
        if held:
            assert ranked.least() == held[0]


def test_values_of_several_runs_are_added_and_taken_out_one_by_one() -> None:
    ranked, held = SortedMultiset(), [number % 7 for number in range(MANY)]
    ranked.add(held)
    for number in range(2500):
        ranked.add([3 + number % 2])
        held.append(3 + number % 2)
    for value in held[:MANY]:
        ranked.remove(value)
    rest = sorted(held[MANY:], reverse=True)
    assert ranked.greatest(MANY) == rest
    assert (ranked.least(), len(ranked)) == (3, 2500)


def test_all_values_taken_out_is_as_if_none_had_been_there() -> None:
    ranked = SortedMultiset()
    ranked.add([1, 1])
    ranked.remove(1)
    ranked.remove(1)
    assert (len(ranked), ranked.greatest(3)) == (0, [])
    ranked.add([2])
    assert ranked.least() == 2


def test_floats_are_in_one_total_order() -> None:
    floats = [-math.inf, -1.5, -0.0, 0.0, 5e-324, 2.0, math.inf, math.nan]
    made = comparable(pa.array(floats))
    assert made == sorted(made)
    assert len(set(made)) == len(floats)
    assert list(map(repr, restored(made, pa.float64()).to_pylist())) == list(map(repr, floats))


@pytest.mark.parametrize(
    "column",
    [
        pa.array([date(1969, 12, 31), date(2026, 1, 1)], pa.date32()),
        pa.array([-5, 7], pa.timestamp("us", "UTC")),
        pa.array(["a", "b"]),
        pa.array([False, True]),
        pa.array([-1.5, 2.25], pa.float32()),
    ],
    ids=lambda column: str(column.type),
)
def test_values_of_a_type_are_in_their_order_and_come_back_as_they_were(column: Any) -> None:
    made = comparable(column)
    assert made == sorted(made)
    with_none = restored([*made, None], column.type)
    assert with_none.equals(pa.concat_arrays([column, pa.nulls(1, column.type)]))
