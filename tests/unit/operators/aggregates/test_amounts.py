"""Numbers added without loss, against Python's own integers, decimals and fractions."""

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

from headwater.errors import UsageError
from headwater.operators.aggregates.amounts import (
    Decimals,
    Floats,
    Integers,
    amount,
    amount_of,
    doubles,
    sorted_out,
)
from soaking import examples

BIG = 2**63 - 1
PRICE = pa.decimal128(9, 2)
VALUES: dict[Any, st.SearchStrategy[Any]] = {
    pa.int64(): st.integers(-BIG - 1, BIG) | st.integers(-9, 9),
    PRICE: st.decimals(-9, 9, places=2),
    pa.float64(): st.floats(allow_nan=False, allow_infinity=False),
}


def total(kind: pa.DataType, parts: list[list[Any]]) -> tuple[np.ndarray[Any, Any], list[pa.Array]]:
    """Return the merged partial sums of parts of one group, and how many values there are."""
    how = amount(kind)
    made = [how.partial(pa.array(part, kind), np.zeros(len(part), np.int64), 1) for part in parts]
    both = [pa.concat_arrays(columns) for columns in zip(*made, strict=True)]
    assert [column.type for column in both] == [field.type for field in how.fields("x", kind)]
    merged = amount_of(both).merge(both, np.zeros(len(parts), np.int64), 1)
    return np.array([sum(map(len, parts))]), merged


def nearest(number: Fraction) -> float:
    try:
        return number.numerator / number.denominator
    except OverflowError:
        return math.inf if number > 0 else -math.inf


@pytest.mark.parametrize("kind", VALUES, ids=str)
@examples(40)
@given(data=st.data())
def test_a_sum_does_not_depend_on_how_it_was_split(kind: pa.DataType, data: st.DataObject) -> None:
    parts = data.draw(st.lists(st.lists(VALUES[kind], max_size=6), min_size=1, max_size=4))
    counts, partials = total(kind, parts)
    values = [Fraction(value) for part in parts for value in part]
    share = Fraction(60, 7)
    told = amount_of(partials).shares(counts, partials, share).to_pylist()
    assert told == [nearest(sum(values, Fraction(0)) * share) if values else None]
    assert partials == total(kind, [[value for part in reversed(parts) for value in part]])[1]


def test_how_a_type_is_added_is_told_by_the_columns_of_its_sum() -> None:
    for kind, how in ((pa.int8(), Integers), (PRICE, Decimals), (pa.float32(), Floats)):
        assert isinstance(amount(kind), how)
        types = [field.type for field in amount(kind).fields("x", kind)]
        assert isinstance(amount_of([pa.nulls(0, each) for each in types]), how)


def test_a_sum_that_overflows_on_the_way_and_comes_back_is_no_error() -> None:
    counts, partials = total(pa.int64(), [[BIG, BIG], [-BIG, -BIG, 7]])
    assert Integers().totals(counts, partials).to_pylist() == [7]
    assert Integers().means(counts, partials).to_pylist() == [7 / 5]


@pytest.mark.parametrize("values", [[BIG, 1], [-BIG - 1, -1]])
def test_a_sum_of_integers_that_does_not_fit_is_refused_and_its_mean_is_not(values: list[int]) -> None:
    counts, partials = total(pa.int64(), [values])
    with pytest.raises(UsageError, match="a sum of integers does not fit BIGINT"):
        Integers().totals(counts, partials)
    assert Integers().means(counts, partials).to_pylist() == [sum(values) / 2]


def test_a_mean_of_decimals_has_four_more_places_and_rounds_a_half_away_from_zero() -> None:
    for sign in (1, -1):
        cents = [Decimal(sign) / 100] + [Decimal("0.00")] * 799
        counts, partials = total(PRICE, [cents])
        assert Decimals().means(counts, partials).to_pylist() == [sign * Decimal("0.000013")]
    assert Decimals().mean_type(PRICE) == pa.decimal128(38, 6)


def test_a_sum_of_decimals_that_does_not_fit_is_refused() -> None:
    wide = pa.decimal128(38, 0)
    counts, partials = total(wide, [[Decimal("9" * 38)], [Decimal(1)]])
    with pytest.raises(UsageError, match=r"a sum of decimals does not fit DECIMAL\(38,0\)"):
        Decimals().totals(counts, partials)


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ([1.0, math.inf], math.inf),
        ([1.0, -math.inf], -math.inf),
        ([math.inf, -math.inf], math.nan),
        ([math.nan, 2.0], math.nan),
    ],
)
def test_what_is_not_finite_decides_in_any_split(values: list[float], told: float) -> None:
    for parts in ([values], [[value] for value in values]):
        counts, partials = total(pa.float64(), parts)
        assert repr(Floats().totals(counts, partials).to_pylist()) == repr([told])
        assert repr(Floats().means(counts, partials).to_pylist()) == repr([told])


def test_finite_floats_are_sorted_out_with_their_groups() -> None:
    values = pa.array([1.0, math.nan, 2.0, math.inf])
    floats, groups, flags = sorted_out(values, np.array([0, 0, 2, 1]), 3)
    assert (floats.tolist(), groups.tolist()) == ([1.0, 2.0], [0, 2])
    assert [flag > 0 for flag in flags.to_pylist()] == [True, True, False]


def test_a_decimal_is_taken_as_the_nearest_float() -> None:
    numbers = ["0.1", "123456789012345678901234567.891", "-0.3"]
    column = pa.array(list(map(Decimal, numbers)), pa.decimal128(38, 3))
    assert doubles(column).tolist() == list(map(float, numbers))
