"""What is known of groups as rows enter and leave, against lists of the values that are in them."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import example, given
from hypothesis import strategies as st

from headwater.operators.tables.tallies import Ranks, Totals, ValueCounts
from soaking import examples
from unit.operators.stepping import rank

FLOATS = st.none() | st.sampled_from([math.inf, -math.inf, math.nan, 0.0, -0.0]) | st.floats(-9, 9)
ROWS = st.lists(st.tuples(st.integers(0, 2), FLOATS), max_size=12)
GROUPS = np.arange(4)
Rows = list[tuple[int, float | None]]


def change(tally: Any, rows: Rows, sign: int) -> None:
    groups = np.array([group for group, _ in rows], np.int64)
    tally.change(groups, pa.array([value for _, value in rows], pa.float64()), sign)


def values(rows: Rows) -> list[list[float]]:
    """Return what is there in each group, in order."""
    there = [[v for g, v in rows if g == group and v is not None] for group in range(4)]
    return [sorted(some, key=lambda value: rank({"x": value})) for some in there]


def total(some: list[float]) -> float | None:
    odd = {str(value) for value in some if not math.isfinite(value)}
    if odd:
        return float(odd.pop()) if len(odd) == 1 else math.nan
    return float(sum(map(Fraction, some))) if some else None


def mean(some: list[float]) -> float | None:
    if not some or not all(map(math.isfinite, some)):
        return total(some)
    return float(sum(map(Fraction, some)) / len(some))


@examples(60)
@given(ROWS, ROWS)
@example([(0, 0.0), (0, -5e-324)], [])  # a mean that is too small for a float
def test_what_is_known_depends_on_the_rows_that_are_there_now(stay: Rows, leave: Rows) -> None:
    tallies = [tally(pa.float64()) for tally in (ValueCounts, Totals, Ranks)]
    for tally in tallies:
        change(tally, stay[::2] + leave, 1)
        change(tally, stay[1::2], 1)
        change(tally, leave[::-1], -1)
    counts, totals, ranks = tallies
    there = values(stay)
    assert counts.of(GROUPS).tolist() == list(map(len, there))
    sums = totals.sums(GROUPS, pa.float64()).to_pylist()
    assert repr(sums) == repr([None if t is None else t + 0.0 for t in map(total, there)])
    means = totals.means(GROUPS).to_pylist()
    assert repr(means) == repr([None if m is None else m + 0.0 for m in map(mean, there)])
    assert repr(ranks.least(GROUPS).to_pylist()) == repr([some[0] if some else None for some in there])
    assert repr(ranks.most(GROUPS).to_pylist()) == repr([some[-1] if some else None for some in there])
    assert repr(ranks.greatest(GROUPS, 2).to_pylist()) == repr([some[::-1][:2] for some in there])


def test_a_group_that_all_rows_have_left_is_as_if_it_had_never_been() -> None:
    ranks = Ranks(pa.float64())
    change(ranks, [(1, 2.0), (1, None)], 1)
    change(ranks, [(1, None), (1, 2.0)], -1)
    assert ranks._ranked == {}


def test_a_sum_that_does_not_fit_its_type_is_null_and_comes_back() -> None:
    totals, greatest = Totals(pa.int64()), 2**63 - 1
    one = np.array([0])
    totals.change(one, pa.array([greatest]), 1)
    totals.change(one, pa.array([1]), 1)
    assert totals.sums(one, pa.int64()).to_pylist() == [None]
    totals.change(one, pa.array([1]), -1)
    assert totals.sums(one, pa.int64()).to_pylist() == [greatest]


def test_a_sum_of_floats_beyond_all_floats_is_infinite() -> None:
    totals, two = Totals(pa.float64()), np.zeros(2, np.int64)
    totals.change(two, pa.array([1.5e308, 1.5e308]), 1)
    assert totals.sums(two[:1], pa.float64()).to_pylist() == [math.inf]
    assert totals.means(two[:1]).to_pylist() == [1.5e308]


def test_both_ends_of_the_numbers_together_are_none_until_one_has_left() -> None:
    totals, two = Totals(pa.float64()), np.zeros(2, np.int64)
    totals.change(two, pa.array([math.inf, -math.inf]), 1)
    assert repr(totals.sums(two[:1], pa.float64()).to_pylist()) == "[nan]"
    totals.change(two[:1], pa.array([math.inf]), -1)
    assert totals.sums(two[:1], pa.float64()).to_pylist() == [-math.inf]


def test_decimals_are_added_in_their_places_and_too_many_digits_are_null() -> None:
    kind, some = pa.decimal128(3, 1), np.zeros(3, np.int64)
    totals = Totals(kind)
    column = pa.array(["99.9", "0.1", None]).cast(kind)
    totals.change(some, column, 1)
    assert totals.sums(some[:1], pa.decimal128(13, 1)).cast(pa.string()).to_pylist() == ["100.0"]
    assert totals.sums(some[:1], kind).to_pylist() == [None]
    assert totals.means(some[:1]).to_pylist() == [50.0]
