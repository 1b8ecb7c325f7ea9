"""Values as whole numbers: in their order, and back."""

from __future__ import annotations

import math
from decimal import Context, Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.operators.memory.value_digits import (
    as_bytes,
    decimal_words,
    digit,
    from_bytes,
    from_single_digits,
    has_one_digit,
    single_digits,
)
from soaking import examples
from unit.operators.stepping import rank

SHORT, LONG = pa.decimal128(18, 3), pa.decimal128(38, 3)


def decimals(count: int) -> st.SearchStrategy[Decimal]:
    numbers = st.integers(-(10**count) + 1, 10**count - 1) | st.integers(-5, 5)
    return numbers.map(lambda n: Decimal(n).scaleb(-3, Context(prec=60)))


ONE: dict[Any, st.SearchStrategy[Any]] = {
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.int8(): st.integers(-128, 127),
    pa.float64(): st.floats(),
    pa.float32(): st.floats(width=32),
    pa.bool_(): st.booleans(),
    pa.date32(): st.dates(),
    pa.timestamp("us"): st.datetimes(),
    SHORT: decimals(18),
}
SEVERAL: dict[Any, st.SearchStrategy[Any]] = {
    pa.string(): st.text() | st.text("ab\0", max_size=20),
    pa.binary(): st.binary() | st.lists(st.sampled_from(b"ab\0\xff"), max_size=20).map(bytes),
    LONG: decimals(38),
}


def in_order(values: list[Any]) -> list[Any]:
    return sorted(values, key=lambda value: rank({"v": value}))


@pytest.mark.parametrize("kind", ONE, ids=str)
@examples(60)
@given(data=st.data())
def test_digits_have_the_order_of_their_values_and_give_them_back(kind: Any, data: st.DataObject) -> None:
    values = data.draw(st.lists(ONE[kind], max_size=10))
    column = pa.array([values[:1], values], pa.list_(kind))[1].values  # begins behind other values
    assert has_one_digit(kind)
    digits = single_digits(column)
    assert repr(from_single_digits(digits, kind).to_pylist()) == repr(column.to_pylist())
    order = sorted(range(len(digits)), key=digits.tolist().__getitem__)
    ordered = [column.to_pylist()[place] for place in order]
    assert repr(ordered) == repr(in_order(column.to_pylist()))


@pytest.mark.parametrize("kind", SEVERAL, ids=str)
@examples(60)
@given(data=st.data())
def test_values_of_several_digits_have_their_order_and_come_back(kind: Any, data: st.DataObject) -> None:
    values = data.draw(st.lists(SEVERAL[kind], max_size=10))
    column = pa.array([None, *values], kind).slice(1)
    assert not has_one_digit(kind)
    assert from_bytes(as_bytes(column), kind).equals(column)
    wide = max(map(len, as_bytes(column).to_pylist()), default=0) // 7 + 1
    digits = list(zip(*(digit(as_bytes(column), place).tolist() for place in range(wide)), strict=True))
    assert [values[n] for n in sorted(range(len(values)), key=digits.__getitem__)] == sorted(values)
    assert len(set(digits)) == len(set(values))


def test_a_digit_says_whether_more_follow() -> None:
    column = pa.array([b"", b"1234567", b"12345678", b"123456\0"])
    first = digit(column, 0)
    assert (first[0] < first[3] < first[1] < first[2]) and digit(column, 1)[2] > digit(column, 1)[1]


def test_words_of_decimals_are_their_unscaled_values() -> None:
    low, high = decimal_words(pa.array([Decimal("-0.001"), Decimal("2.000")], LONG))
    assert (low.tolist(), high.tolist()) == ([-1, 2000], [-1, 0])
    assert math.isnan(from_single_digits(single_digits(pa.array([math.nan])), pa.float64())[0].as_py())
