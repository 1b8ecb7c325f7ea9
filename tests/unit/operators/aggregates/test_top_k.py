"""The most frequent values against a counter, while there is room for all, and their bounds beyond."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.operators.aggregates.top_k import TopK
from soaking import examples

NUMBERS = st.lists(st.integers(-3, 6), max_size=25)


def rows(values: list[Any]) -> pa.Table:
    return pa.table({"n": pa.array(values, pa.int64())})


def pairs(found: list[dict[str, Any]] | None) -> list[tuple[Any, int]] | None:
    return None if found is None else [(row["value"], row["count"]) for row in found]


@examples(50)
@given(NUMBERS, NUMBERS, st.integers(1, 5))
def test_values_for_which_there_is_room_are_counted_exactly_in_any_split(
    some: list[int], more: list[int], k: int
) -> None:
    top = TopK("n", k)
    parts = []
    for part in (some, more):
        at = np.zeros(len(part), np.int64)
        parts.append(top.partial(rows(part), at, at, 1))
    both = [pa.concat_arrays(columns) for columns in zip(*parts, strict=True)]
    (found,) = top.finish(top.merge(both, np.zeros(2, np.int64), 1))
    counts = Counter(some + more)
    first = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:k]
    assert pairs(found.to_pylist()[0]) == (first or None)


def test_a_count_is_never_less_than_the_true_one_and_within_its_bounds() -> None:
    counts = {number: 200 - 40 * number for number in range(4)}
    values = [n for n, times in counts.items() for _ in range(times)] + list(range(100, 3000))
    found, low, high = TopK("n", 3, bounds=True).over(rows(values))
    assert [row["value"] for row in found] == [0, 1, 2]
    for row, least, most in zip(found, low, high, strict=True):
        assert least <= counts[row["value"]] <= row["count"] <= most


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.timestamp("us", "UTC"), [5, -7]),
        (pa.date32(), [3, -3]),
        (pa.float64(), [0.1, 1e300]),
        (pa.float32(), [0.1, 2.5]),
        (pa.bool_(), [True, False]),
        (pa.string(), ["ü", ""]),
        (pa.int8(), [-128, 5]),
    ],
    ids=str,
)
def test_values_come_out_as_they_went_in(kind: pa.DataType, values: list[Any]) -> None:
    column = pa.array([values[0], values[1], values[0]], kind)
    (found,) = TopK("n", 2).over(pa.table({"n": column}))
    assert pairs(found) == [(column[0].as_py(), 2), (column[1].as_py(), 1)]


def test_zero_has_no_sign_and_all_nans_are_one() -> None:
    (found,) = TopK("n", 5).over(pa.table({"n": [0.0, -0.0, float("nan"), -float("nan"), float("nan")]}))
    assert repr(pairs(found)) == "[(nan, 3), (0.0, 2)]"


def test_groups_are_told_apart_and_one_without_values_is_null() -> None:
    top = TopK("n", 1)
    partials = top.partial(rows([1, 1, None, 2]), np.zeros(4, np.int64), np.array([0, 0, 1, 2]), 3)
    (found,) = top.finish(partials)
    assert list(map(pairs, found.to_pylist())) == [[(1, 2)], None, [(2, 1)]]
