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

from headwater.operators.tables.exact import LimbSums, exact_sums, finite
from soaking import examples

PRICE = pa.decimal128(38, 3)
VALUES: dict[Any, st.SearchStrategy[Any]] = {
    pa.int64(): st.integers(-(2**63), 2**63 - 1) | st.integers(-5, 5),
    pa.float64(): st.floats(allow_nan=False, allow_infinity=False),
    pa.float32(): st.floats(allow_nan=False, allow_infinity=False, width=32),
    PRICE: st.integers(-(10**38) + 1, 10**38 - 1).map(lambda n: Decimal(n).scaleb(-3, Context(prec=60))),
}
UNITS: dict[Any, int] = {pa.int64(): 1, PRICE: 1000, pa.float64(): 1, pa.float32(): 1}
Columns = list[pa.Array]


def none_yet(kind: pa.DataType, groups: int = 3) -> Columns:
    fields = exact_sums(kind).fields
    return [pa.array([[] if pa.types.is_list(f.type) else 0] * groups, f.type) for f in fields]


def change(columns: Columns, kind: pa.DataType, rows: list[tuple[int, Any]], sign: int) -> Columns:
    groups = np.array([group for group, _ in rows], np.int64)
    longer = pa.array([0, *(value for _, value in rows)], kind)
    made = exact_sums(kind).changed(columns, groups, longer.slice(1), np.full(len(rows), sign))
    assert [column.type for column in made] == [field.type for field in exact_sums(kind).fields]
    return made


def read(kind: pa.DataType, columns: Columns) -> list[Fraction]:
    return [Fraction(*pair) for pair in exact_sums(kind).fractions(columns)]


def by_hand(kind: pa.DataType, rows: list[tuple[int, Any]]) -> list[Fraction]:
    unit = UNITS[kind]
    return [sum((Fraction(v) * unit for g, v in rows if g == group), Fraction(0)) for group in range(3)]


@pytest.mark.parametrize("kind", VALUES, ids=str)
@examples(40)
@given(data=st.data())
def test_a_sum_depends_on_the_numbers_that_are_in_it_alone(kind: pa.DataType, data: st.DataObject) -> None:
    rows = st.lists(st.tuples(st.integers(0, 2), VALUES[kind]), max_size=12)
    stay, leave = data.draw(rows), data.draw(rows)
    columns = change(none_yet(kind), kind, stay + leave, 1)
    assert read(kind, columns) == by_hand(kind, stay + leave)
    columns = change(columns, kind, leave[::-1], -1)
    assert read(kind, columns) == by_hand(kind, stay)
    assert columns == change(none_yet(kind), kind, stay, 1), "what has left leaves nothing behind"


def test_very_many_numbers_do_not_overflow() -> None:
    sums, greatest = LimbSums(pa.int64()), 2**63 - 1
    columns = none_yet(pa.int64(), 1)
    for sign, wanted in ((1, 5000 * greatest), (-1, 0), (-1, -5000 * greatest)):
        ones = np.ones(5000, np.int64)
        columns = sums.changed(columns, 0 * ones, pa.array(np.full(5000, greatest)), sign * ones)
        assert sums.fractions(columns) == [(wanted, 1)]


def test_which_integers_fit_64_bits_is_told() -> None:
    sums = LimbSums(pa.int64())
    rows = [(0, 2**63 - 1), (1, -(2**63)), (2, 2**63 - 1), (2, 1)]
    totals, wide = sums.integers(change(none_yet(pa.int64()), pa.int64(), rows, 1))
    assert totals[:2].tolist() == [2**63 - 1, -(2**63)]
    assert wide.tolist() == [False, False, True]


def test_what_has_a_place_among_the_numbers_is_told_by_its_type() -> None:
    assert finite(pa.array([1.0, float("inf"), float("nan"), None])).to_pylist() == [True, False, False, None]
    assert finite(pa.array([1, None])).to_pylist() == [True, False]
