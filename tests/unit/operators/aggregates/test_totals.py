"""Counts, sums, means and variances: exact, and rounded once."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.operators.aggregates.aggregate import Aggregate
from headwater.operators.aggregates.totals import Count, Mean, Stddev, Sum, Variance
from soaking import examples

FLOATS = st.none() | st.floats(-1e6, 1e6) | st.sampled_from([1e16, -1e16, 5e-324, 0.1])
VALUES = st.lists(FLOATS, max_size=10)
Values = list[float | None]


def played(aggregate: Aggregate, parts: list[Values]) -> Any:
    """Return what all values come to, from partial results that are merged."""
    made = []
    for part in parts:
        at = np.zeros(len(part), np.int64)
        made.append(aggregate.partial(pa.table({"x": pa.array(part, pa.float64())}), at, at, 1))
    both = [pa.concat_arrays(columns) for columns in zip(*made, strict=True)]
    (out,) = aggregate.finish(aggregate.merge(both, np.zeros(len(parts), np.int64), 1))
    return out.to_pylist()[0]


def nearest(number: Fraction) -> float:
    return number.numerator / number.denominator


@examples(60)
@given(VALUES, VALUES)
def test_what_is_told_is_the_exact_result_rounded_once(some: Values, more: Values) -> None:
    values = [Fraction(value) for value in some + more if value is not None]
    many = len(values)
    mean = sum(values, Fraction(0)) / many if values else None
    assert played(Count(), [some, more]) == len(some + more)
    assert played(Count("x"), [some, more]) == many
    assert played(Sum("x"), [some, more]) == (nearest(sum(values, Fraction(0))) if values else None)
    assert played(Mean("x"), [some, more]) == (None if mean is None else nearest(mean))
    squares = None if mean is None or many < 2 else sum((value - mean) ** 2 for value in values) / (many - 1)
    variance = None if squares is None else nearest(Fraction(squares))
    assert played(Variance("x"), [more, some]) == variance
    assert played(Stddev("x"), [more, some]) == (None if variance is None else math.sqrt(variance))


def test_a_variance_of_large_numbers_that_are_near_each_other_keeps_its_digits() -> None:
    values: Values = [1e15 + number for number in (4, 7, 13, 16)]
    assert played(Variance("x"), [values]) == 30.0
    assert played(Variance("x"), [[0.1], [0.1, 0.1]]) == 0.0


@pytest.mark.parametrize("odd", [math.nan, math.inf, -math.inf])
def test_a_variance_with_what_is_not_finite_is_none_at_all(odd: float) -> None:
    assert math.isnan(played(Variance("x"), [[1.0], [odd]]))
    assert played(Variance("x"), [[odd]]) is None


@pytest.mark.parametrize(
    ("kind", "total", "mean"),
    [
        (pa.int8(), pa.int64(), pa.float64()),
        (pa.float32(), pa.float64(), pa.float64()),
        (pa.decimal128(9, 2), pa.decimal128(38, 2), pa.decimal128(38, 6)),
    ],
    ids=str,
)
def test_a_sum_and_a_mean_have_types_that_hold_them(kind: Any, total: Any, mean: Any) -> None:
    rows = pa.table({"x": pa.array([Decimal(1), Decimal(2)]).cast(kind)})
    for aggregate, told in ((Sum("x"), total), (Mean("x"), mean)):
        assert aggregate.output("out", rows.schema)[0].type == told
        partials = aggregate.partial(rows, np.zeros(2, np.int64), np.zeros(2, np.int64), 1)
        assert aggregate.finish(partials)[0].type == told
        assert [part.type for part in partials] == [f.type for f in aggregate.state("out", rows.schema)]
    assert not Count().output("out", rows.schema)[0].nullable
