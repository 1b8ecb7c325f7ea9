"""What is known of groups as rows enter and leave, against lists of the values that are in them."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pyarrow as pa
from hypothesis import example, given
from hypothesis import strategies as st

from headwater.operators.tables.tallies import Ends, Totals, ValueCounts
from soaking import examples
from unit.operators.stepping import rank
from unit.operators.tables.tallying import Tallied

FLOATS = st.none() | st.sampled_from([math.inf, -math.inf, math.nan, 0.0, -0.0]) | st.floats(-9, 9)
ROWS = st.lists(st.tuples(st.integers(0, 2), FLOATS), max_size=12)
COUNT = 4
Rows = list[tuple[int, float | None]]


DOUBLE = pa.float64()


def tallied(kind: pa.DataType = DOUBLE, what: Any = Totals, groups: int = 1) -> Tallied:
    return Tallied(what(kind, Ends()), groups)


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
    counts, totals = (tallied(what=what, groups=COUNT) for what in (ValueCounts, Totals))
    for each in (counts, totals):
        each.change(stay[::2] + leave, pa.float64(), 1)
        each.change(stay[1::2], pa.float64(), 1)
        each.change(leave[::-1], pa.float64(), -1)
    there = values(stay)
    assert counts.columns[0].to_pylist() == list(map(len, there))
    sums = totals.tally.sums(totals.columns, pa.float64()).to_pylist()
    assert repr(sums) == repr([None if t is None else t + 0.0 for t in map(total, there)])
    means = totals.tally.means(totals.columns).to_pylist()
    assert repr(means) == repr([None if m is None else m + 0.0 for m in map(mean, there)])


def test_a_group_that_all_rows_have_left_is_as_if_it_had_never_been() -> None:
    totals = tallied(groups=2)
    totals.change([], pa.float64(), 1)
    never = totals.columns
    totals.change([(1, 2.0), (1, None), (1, math.inf)], pa.float64(), 1)
    totals.change([(1, None), (1, math.inf), (1, 2.0)], pa.float64(), -1)
    assert totals.columns == never


def test_a_sum_that_does_not_fit_its_type_is_null_and_comes_back() -> None:
    totals, kind, greatest = tallied(pa.int64()), pa.int64(), 2**63 - 1
    totals.change([(0, greatest), (0, 1)], kind, 1)
    assert totals.tally.sums(totals.columns, kind).to_pylist() == [None]
    totals.change([(0, 1)], kind, -1)
    assert totals.tally.sums(totals.columns, kind).to_pylist() == [greatest]


def test_means_of_integers_are_rounded_once_whatever_their_size() -> None:
    for some in ([1, 2, 4], [2**53 + 1, 0, 0], [2**63 - 1, 2**63 - 1, 1], [-1, 0, 0]):
        totals = tallied(pa.int64())
        totals.change([(0, value) for value in some], pa.int64(), 1)
        assert totals.tally.means(totals.columns).to_pylist() == [sum(some) / 3]


def test_a_sum_of_floats_beyond_all_floats_is_infinite() -> None:
    totals = tallied()
    totals.change([(0, 1.5e308), (0, 1.5e308)], pa.float64(), 1)
    assert totals.tally.sums(totals.columns, pa.float64()).to_pylist() == [math.inf]
    assert totals.tally.means(totals.columns).to_pylist() == [1.5e308]


def test_both_ends_of_the_numbers_together_are_none_until_one_has_left() -> None:
    totals = tallied()
    totals.change([(0, math.inf), (0, -math.inf)], pa.float64(), 1)
    assert repr(totals.tally.sums(totals.columns, pa.float64()).to_pylist()) == "[nan]"
    totals.change([(0, math.inf)], pa.float64(), -1)
    assert totals.tally.sums(totals.columns, pa.float64()).to_pylist() == [-math.inf]


def test_decimals_are_added_in_their_places_and_too_many_digits_are_null() -> None:
    kind = pa.decimal128(3, 1)
    totals = tallied(kind)
    totals.change([(0, Decimal("99.9")), (0, Decimal("0.1")), (0, None)], kind, 1)
    assert totals.tally.sums(totals.columns, pa.decimal128(13, 1)).cast(pa.string()).to_pylist() == ["100.0"]
    assert totals.tally.sums(totals.columns, kind).to_pylist() == [None]
    assert totals.tally.means(totals.columns).to_pylist() == [50.0]


def test_what_aggregates_ask_for_together_is_the_most_of_each() -> None:
    assert Ends(1, 0) | Ends(0, 3) | Ends(0, 2) == Ends(1, 3)
