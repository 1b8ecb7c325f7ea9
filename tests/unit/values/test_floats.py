"""Numbers in FLOAT and DOUBLE columns are written as they were, or refused."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.values import floats
from headwater.values.columns import Misfit


@given(st.integers(-(2**70), 2**70) | st.integers(0, 60).map(lambda power: 2**power + 1))
def test_a_whole_number_is_kept_exactly_or_refused(number: int) -> None:
    if int(float(number)) == number:
        assert floats.double(number) == number
    else:
        with pytest.raises(Misfit, match=f"{number} would be changed"):
            floats.double(number)


@given(st.decimals("-1e20", "1e20", places=3) | st.decimals("-1", "1", places=22))
def test_a_decimal_is_kept_where_rounding_to_its_digits_gives_it_back(number: Decimal) -> None:
    _, _, exponent = number.normalize().as_tuple()
    unit = Fraction(10) ** int(exponent)
    apart = abs(Fraction(float(number)) - Fraction(number))
    if apart * 2 <= unit:
        assert floats.double(number) == float(number)
    else:
        with pytest.raises(Misfit):
            floats.double(number)


@pytest.mark.parametrize("number", [Decimal("1e400"), Decimal("-1e400"), Decimal("1e-400"), 10**400])
def test_nothing_overflows_to_infinity_or_underflows_to_nought(number: Decimal | int) -> None:
    with pytest.raises(Misfit):
        floats.double(number)


@given(st.lists(st.none() | st.floats(width=32), max_size=5))
def test_what_a_float_holds_is_kept_also_what_is_not_finite(values: list[float | None]) -> None:
    made = floats.single(pa.array(values, pa.float64()))
    assert made.type == pa.float32()
    assert repr(made.to_pylist()) == repr(values)


@given(st.integers(-999_999, 999_999), st.integers(-6, 6))
def test_six_digits_come_back_as_they_were(digits: int, exponent: int) -> None:
    number = float(f"{digits}e{exponent}")
    [kept] = floats.single(pa.array([number], pa.float64())).to_pylist()
    assert float(f"{kept:.6g}") == number


@pytest.mark.parametrize("number", [0.12345678901, 16_777_217.0, 1e39, -1e39, 1e-60])
def test_a_double_that_no_float_is_written_as_is_refused(number: float) -> None:
    with pytest.raises(Misfit, match="would be changed"):
        floats.single(pa.array([1.0, None, number]))


def test_text_is_read_with_names_for_what_is_not_finite_and_refused_where_digits_would_go() -> None:
    found = floats.read(pa.array([" 1.5 ", "-Inf", None, "1e3"]), pa.float64())
    assert found.to_pylist() == [1.5, -math.inf, None, 1000.0]
    assert math.isnan(floats.read(pa.array(["NaN"]), pa.float32())[0].as_py())
    for text in ("9007199254740993", "1e999", "0.1234567890123456789012"):
        with pytest.raises(Misfit):
            floats.read(pa.array([text]), pa.float64())
