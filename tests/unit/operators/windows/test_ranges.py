"""Partial results merged over many ranges at once, against a sum for each."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from headwater.operators.groups import Numbers
from headwater.operators.memory.entries import Entries, merged, spans
from headwater.operators.windows.ranges import over
from soaking import examples

NUMBERS = st.integers(-4, 6)
PARTS = st.lists(st.tuples(NUMBERS, NUMBERS, st.integers(1, 9)), max_size=12)
Part = tuple[int, int, int]


def added(rows: pa.Table, groups: Numbers, count: int) -> pa.Table:
    return pa.table({"n": np.bincount(groups, rows["n"].to_numpy(), count).astype(np.int64)})


def entries(parts: list[Part]) -> Entries:
    lead, then, n = (np.array([part[place] for part in parts], np.int64) for place in range(3))
    return Entries(lead, then, pa.table({"n": n}))


@examples(60)
@given(PARTS.filter(bool), st.lists(st.tuples(NUMBERS, NUMBERS, NUMBERS), max_size=9))
def test_over_many_ranges_is_over_each(parts: list[Part], asked: list[Part]) -> None:
    known = merged([entries(parts)], added)
    lead, first, last = (np.array([ask[place] for ask in asked], np.int64) for place in range(3))
    starts, ends = spans(known, lead, first, last)
    some = starts < ends
    found = over(known, starts[some], ends[some], added)["n"].to_pylist()
    sums = [sum(n for one, two, n in parts if one == a and b <= two < c) for a, b, c in asked]
    assert found == [total for total in sums if total]


def test_parts_of_different_keys_are_never_merged() -> None:
    def careful(rows: pa.Table, groups: Numbers, count: int) -> pa.Table:
        owners = rows["n"].to_numpy()
        assert all(len(set(owners[groups == group])) == 1 for group in range(count))
        first = [int(np.flatnonzero(groups == group)[0]) for group in range(count)]
        return rows.take(pa.array(first))

    known = entries([(key, at, key) for key in range(5) for at in range(key + 3)])
    starts, ends = spans(known, np.arange(5), np.zeros(5, np.int64), np.full(5, 9))
    assert over(known, starts, ends, careful)["n"].to_pylist() == [0, 1, 2, 3, 4]


def test_a_long_range_is_made_of_a_few_parts() -> None:
    seen: list[int] = []

    def counting(rows: pa.Table, groups: Numbers, count: int) -> pa.Table:
        seen.append(len(rows))
        return added(rows, groups, count)

    known = entries([(0, at, 1) for at in range(1024)])
    starts = np.arange(100)
    found = over(known, starts, starts + 900, counting)["n"].to_pylist()
    assert found == [900] * 100
    assert sum(seen) < 2 * 1024 + 100 * 20


def test_no_ranges_are_no_rows_of_the_same_columns() -> None:
    none = np.empty(0, np.int64)
    assert over(entries([(0, 0, 1)]), none, none, added).equals(pa.table({"n": none}))
