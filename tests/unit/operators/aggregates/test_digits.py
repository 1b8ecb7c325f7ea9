"""Sums of floats against fractions, which round nothing."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from headwater.operators.aggregates import digits
from soaking import examples

FLOATS = st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from([0.0, -0.0, 5e-324, 1e308, -1e16])
ROWS = st.lists(st.tuples(st.integers(0, 2), FLOATS), max_size=20)
Rows = list[tuple[int, float]]


def stored(rows: Rows, squares: bool = False) -> list[pa.Array]:
    values, groups = np.array([v for _, v in rows], np.float64), np.array([g for g, _ in rows], np.int64)
    return digits.stored((digits.squared if squares else digits.summed)(values, groups, 3))


def exact(columns: list[pa.Array]) -> list[Fraction]:
    return [number * Fraction(2) ** exponent for number, exponent in digits.numbers(columns)]


def by_hand(rows: Rows, power: int = 1) -> list[Fraction]:
    return [sum((Fraction(v) ** power for g, v in rows if g == group), Fraction(0)) for group in range(3)]


@examples(60)
@given(ROWS)
def test_a_stored_sum_is_the_exact_sum(rows: Rows) -> None:
    assert exact(stored(rows)) == by_hand(rows)


@examples(60)
@given(ROWS)
def test_a_stored_sum_of_squares_is_the_exact_one(rows: Rows) -> None:
    assert exact(stored(rows, squares=True)) == by_hand(rows, 2)


@examples(60)
@given(ROWS, ROWS)
def test_equal_sums_are_stored_as_equal_digits_however_they_came_about(some: Rows, others: Rows) -> None:
    parts = [pa.concat_arrays(pair) for pair in zip(stored(some), stored(others), strict=True)]
    merged = digits.stored(digits.merged(parts, np.tile(np.arange(3), 2), 3))
    assert merged == stored([*others, *some])
    assert exact(merged) == by_hand([*some, *others])


def test_what_cancels_out_is_zero_without_digits() -> None:
    first, lists = stored([(0, 1e300), (0, 5e-324), (0, -1e300), (0, -5e-324)])
    assert (first.to_pylist(), lists.to_pylist()) == ([0, 0, 0], [[], [], []])


def test_numbers_of_one_size_have_few_digits() -> None:
    _, lists = stored([(0, 100.1 + number) for number in range(50)])
    assert len(lists.to_pylist()[0]) <= 4


@examples(60)
@given(st.integers(-(2**80), 2**80), st.integers(-90, 90), st.integers(1, 2**40))
def test_a_ratio_is_the_nearest_float(number: int, exponent: int, divisor: int) -> None:
    told = Fraction(number) * Fraction(2) ** exponent / divisor
    assert digits.ratio(number, exponent, divisor) == told.numerator / told.denominator


def test_a_ratio_beyond_all_floats_is_infinite() -> None:
    assert (digits.ratio(1, 1024), digits.ratio(-1, 1024)) == (math.inf, -math.inf)
