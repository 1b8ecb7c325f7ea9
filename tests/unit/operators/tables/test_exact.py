"""Sums to which numbers are added and from which they are taken, against Python's integers and fractions."""

from __future__ import annotations

from decimal import Context, Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.operators.tables.exact import SCALE, Sums, finite
from soaking import examples

PRICE = pa.decimal128(38, 3)
VALUES: dict[Any, st.SearchStrategy[Any]] = {
    pa.int64(): st.integers(-(2**63), 2**63 - 1) | st.integers(-5, 5),
    pa.float64(): st.floats(allow_nan=False, allow_infinity=False),
    pa.float32(): st.floats(allow_nan=False, allow_infinity=False, width=32),
    PRICE: st.integers(-(10**38) + 1, 10**38 - 1).map(lambda n: Decimal(n).scaleb(-3, Context(prec=60))),
}
UNITS: dict[Any, int] = {
    pa.int64(): 1,
    PRICE: 1000,
    pa.float64(): 2**SCALE,
    pa.float32(): 2**SCALE,
}
GROUPS = np.arange(3)


def change(sums: Sums, kind: pa.DataType, rows: list[tuple[int, Any]], sign: int) -> None:
    groups = np.array([group for group, _ in rows], np.int64)
    longer = pa.array([0, *(value for _, value in rows)], kind)
    sums.change(groups, longer.slice(1), sign)


def by_hand(kind: pa.DataType, rows: list[tuple[int, Any]]) -> list[Fraction]:
    unit = UNITS[kind]
    return [sum((Fraction(v) * unit for g, v in rows if g == group), Fraction(0)) for group in range(3)]


@pytest.mark.parametrize("kind", VALUES, ids=str)
@examples(40)
@given(data=st.data())
def test_a_sum_depends_on_the_numbers_that_are_in_it_alone(kind: pa.DataType, data: st.DataObject) -> None:
    rows = st.lists(st.tuples(st.integers(0, 2), VALUES[kind]), max_size=12)
    stay, leave = data.draw(rows), data.draw(rows)
    sums = Sums()
    change(sums, kind, stay + leave, 1)
    assert sums.of(GROUPS) == by_hand(kind, stay + leave)
    change(sums, kind, leave[::-1], -1)
    assert sums.of(GROUPS) == by_hand(kind, stay)


def test_nothing_is_held_of_a_sum_that_is_zero() -> None:
    sums = Sums()
    change(sums, pa.float64(), [(0, 1e300), (0, 5e-324), (1, 0.0)], 1)
    change(sums, pa.float64(), [(0, 5e-324), (0, 1e300)], -1)
    assert sums._sums == {}


def test_very_many_numbers_do_not_overflow() -> None:
    sums, greatest = Sums(), 2**63 - 1
    sums.change(np.zeros(5000, np.int64), pa.array(np.full(5000, greatest)), 1)
    assert sums.of(np.array([0])) == [5000 * greatest]


def test_what_has_a_place_among_the_numbers_is_told_by_its_type() -> None:
    assert finite(pa.array([1.0, float("inf"), float("nan"), None])).to_pylist() == [True, False, False, None]
    assert finite(pa.array([1, None])).to_pylist() == [True, False]
