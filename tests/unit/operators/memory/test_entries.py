"""Partial results that are merged when they meet, against plain loops."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from headwater.operators.event_time import FOREVER
from headwater.operators.groups import Numbers
from headwater.operators.memory.entries import Entries, arranged, closed_spans, merged, spread
from headwater.operators.memory.sorted_runs import SortedRuns
from soaking import examples

NUMBERS = st.integers(-4, 6)
PARTS = st.lists(st.tuples(NUMBERS, NUMBERS, st.integers(1, 9)), max_size=12)
EMPTY = pa.table({"n": pa.array([], pa.int64())})
Part = tuple[int, int, int]


def added(rows: pa.Table, groups: Numbers, count: int) -> pa.Table:
    return pa.table({"n": np.bincount(groups, rows["n"].to_numpy(), count).astype(np.int64)})


def entries(parts: list[Part]) -> Entries:
    lead, then, n = (np.array([part[place] for part in parts], np.int64) for place in range(3))
    return Entries(lead, then, pa.table({"n": n}))


def counted(found: Entries) -> list[Part]:
    return list(zip(found.major.tolist(), found.minor.tolist(), found.rows["n"].to_pylist(), strict=True))


def summed(parts: list[Part]) -> list[Part]:
    counts: Counter[tuple[int, int]] = Counter()
    for lead, then, n in parts:
        counts[lead, then] += n
    return sorted((*pair, n) for pair, n in counts.items())


@examples(200)
@given(st.lists(PARTS, max_size=8), NUMBERS, NUMBERS, st.sets(NUMBERS), st.data())
def test_parts_of_equal_numbers_are_one_and_found_by_ranges(
    steps: list[list[Part]], first: int, last: int, majors: set[int], data: st.DataObject
) -> None:
    held, parts, before = SortedRuns(EMPTY, added), list[Part](), -9
    for step in steps:
        step = [part for part in step if part[0] >= before]  # what is older is late, and never added
        held.add(entries(step))
        parts += step
        if data.draw(st.booleans()):
            before = max(before, data.draw(NUMBERS))
            held.drop(before)
            parts = [part for part in parts if part[0] >= before]
    assert counted(held.all()) == summed(parts)
    assert counted(held.between(first, last)) == summed([p for p in parts if first <= p[0] < last])
    asked = np.array(sorted(majors), np.int64)
    found = held.within(asked, np.full(len(asked), first), np.full(len(asked), last))
    assert counted(found) == summed([p for p in parts if p[0] in majors and first <= p[1] < last])
    assert held.next(first) == min((p[0] for p in parts if p[0] >= first), default=None)
    held.retain(first)
    assert counted(held.all()) == summed([p for p in parts if p[1] > first])


def test_pairs_are_sorted_also_where_they_do_not_fit_one_number() -> None:
    far = np.array([1 << 61, -(1 << 61), 5, -(1 << 61)])
    assert arranged(far, np.array([0, 1 << 61, 7, 3])).tolist() == [3, 1, 2, 0]
    assert arranged(far, np.array([0, 2, 7, 2])).tolist() == [1, 3, 2, 0]


@examples(100)
@given(st.lists(st.tuples(st.sampled_from([-(1 << 62), 5, 1 << 62]), NUMBERS), max_size=12))
def test_hashes_and_times_are_sorted_and_equal_ones_stay_in_their_order(pairs: list[tuple[int, int]]) -> None:
    major, minor = (np.array([pair[place] for pair in pairs], np.int64) for place in range(2))
    places = sorted(range(len(pairs)), key=lambda place: pairs[place])
    assert arranged(major, minor).tolist() == places


@examples(60)
@given(PARTS, st.lists(st.tuples(NUMBERS, NUMBERS, NUMBERS), max_size=6))
def test_a_closed_span_has_both_of_its_ends(parts: list[Part], asked: list[Part]) -> None:
    found = merged([entries([*parts, (99, FOREVER, 1)])], None)
    assert counted(found) == sorted([*parts, (99, FOREVER, 1)], key=lambda part: part[:2])
    asked = [*asked, (99, 0, FOREVER)]
    start, end = closed_spans(
        found, *(np.array([each[place] for each in asked], np.int64) for place in range(3))
    )
    counts = [sum(p[0] == of and low <= p[1] <= high for p in counted(found)) for of, low, high in asked]
    assert np.maximum(end - start, 0).tolist() == counts


FAR = st.sampled_from([-(1 << 63), -1, 0, 1, 5, (1 << 63) - 1])


@examples(200)
@given(st.lists(st.tuples(FAR, FAR)))
def test_pairs_of_any_numbers_are_arranged_as_python_sorts_them(pairs: list[tuple[int, int]]) -> None:
    major, minor = (np.array([pair[place] for pair in pairs], np.int64) for place in (0, 1))
    assert arranged(major, minor).tolist() == sorted(range(len(pairs)), key=pairs.__getitem__)


def test_ranges_are_spread_in_their_order() -> None:
    assert spread(np.array([5, 2, 9]), np.array([7, 2, 10])).tolist() == [5, 6, 9]
