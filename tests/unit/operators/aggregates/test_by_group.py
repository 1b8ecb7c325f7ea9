"""Values of many groups at once against a loop over the groups."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from headwater.operators.aggregates.by_group import (
    added,
    chosen,
    counted,
    lengths,
    listed,
    lists_of,
    placed,
    present,
    ranks_within,
    reduced,
    together,
)
from headwater.operators.groups import Numbers
from soaking import examples

COUNT = 5
ROWS = st.lists(st.tuples(st.integers(0, COUNT - 1), st.none() | st.integers(-9, 9)), max_size=20)


def apart(rows: list[Any]) -> tuple[Numbers, pa.Array]:
    return np.array([group for group, _ in rows], np.int64), pa.array([v for _, v in rows], pa.int64())


def by_hand(rows: list[Any]) -> list[list[int]]:
    return [[value for mine, value in rows if mine == group and value is not None] for group in range(COUNT)]


@examples(60)
@given(ROWS)
def test_each_group_has_a_place_whether_it_has_values_or_not(rows: list[Any]) -> None:
    groups, values = apart(rows)
    found = present(pa.table({"v": values}), "v", groups)
    hand = by_hand(rows)
    assert counted(found.groups, COUNT).tolist() == list(map(len, hand))
    assert added(found.values.to_numpy(), found.groups, COUNT).tolist() == list(map(sum, hand))
    for how, function in (("min", min), ("max", max)):
        told = reduced(found.values, found.groups, COUNT, how).to_pylist()
        assert told == [function(some) if some else None for some in hand]


@examples(60)
@given(ROWS)
def test_rows_put_group_by_group_are_listed_ranked_and_taken_apart_again(rows: list[Any]) -> None:
    all_groups, all_values = apart(rows)
    values, groups, _ = present(pa.table({"v": all_values}), "v", all_groups)
    places, bounds = together(groups, COUNT)
    in_order = values.take(pa.array(places))
    hand = by_hand(rows)
    assert [in_order[low:high].to_pylist() for low, high in bounds] == hand
    lists = listed(in_order, groups[places], COUNT)
    assert lists.to_pylist() == hand
    assert lengths(lists).tolist() == list(map(len, hand))
    assert lists_of(lists).tolist() == groups[places].tolist()
    assert ranks_within(groups[places]).tolist() == [n for some in hand for n in range(len(some))]


def test_what_is_missing_is_null_and_not_an_empty_list() -> None:
    lists = listed(pa.array([7]), np.array([1]), 3, np.array([True, False, False]))
    assert lists.to_pylist() == [None, [7], []]
    assert lengths(lists).tolist() == [0, 1, 0]


def test_the_last_place_of_a_group_is_chosen_and_of_none_there_is_null() -> None:
    places = placed(np.array([2, 0, 2]), 4)
    assert places.tolist() == [1, -1, 2, -1]
    assert chosen(pa.array(["a", "b", "c"]), places).to_pylist() == ["b", None, "c", None]


def test_a_column_without_nulls_is_passed_on_as_it_is() -> None:
    groups = np.array([0, 1])
    found = present(pa.table({"v": [1, 2]}), "v", groups)
    assert found.indices is None
    assert found.groups is groups
