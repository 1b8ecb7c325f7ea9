"""Functions of expressions: null where a row has no result, and never another row's trouble."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.errors import UsageError
from headwater.expressions import functions
from headwater.expressions.functions import EARLIEST, FUNCTIONS, LATEST

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
FACTORS = {"timestamp_seconds": 1_000_000, "timestamp_millis": 1000, "timestamp_micros": 1}


def time(micros: int) -> datetime | None:
    return EPOCH + timedelta(microseconds=micros) if EARLIEST <= micros <= LATEST else None


@given(st.sampled_from(sorted(FACTORS)), st.lists(st.none() | st.integers(-(2**63), 2**63 - 1)))
def test_numbers_since_1970_are_times_of_the_years_1_to_9999_or_null(
    name: str, numbers: list[int | None]
) -> None:
    found = FUNCTIONS[name].compute([pa.array(numbers, pa.int64())]).to_pylist()
    assert found == [None if number is None else time(number * FACTORS[name]) for number in numbers]


@given(st.lists(st.none() | st.floats(width=64)))
def test_seconds_may_have_fractions(numbers: list[float | None]) -> None:
    found = functions.scaled(pa.array(numbers, pa.float64()), 1_000_000, "x").to_pylist()
    for number, result in zip(numbers, found, strict=True):
        fits = number is not None and abs(number) < 1e12
        assert result == (time(int(number * 1e6)) if fits and number is not None else None)


INT64 = st.none() | st.integers(-(2**63), 2**63 - 1)


@given(st.sampled_from("+-*"), st.lists(st.tuples(INT64, INT64), min_size=1))
def test_arithmetic_of_integers_is_exact_or_null(
    sign: str, pairs: list[tuple[int | None, int | None]]
) -> None:
    left, right = (pa.array([pair[at] for pair in pairs], pa.int64()) for at in (0, 1))
    exact = {"+": int.__add__, "-": int.__sub__, "*": int.__mul__}[sign]
    expected = [None if a is None or b is None else exact(a, b) for a, b in pairs]
    in_range = [each if each is not None and -(2**63) <= each < 2**63 else None for each in expected]
    assert functions.arithmetic(sign, left, right).to_pylist() == in_range


def test_a_quotient_is_a_double_and_by_zero_null() -> None:
    found = functions.arithmetic("/", pa.array([1, 1, None]), pa.array([2, 0, 1])).to_pylist()
    assert found == [0.5, None, None]


@pytest.mark.parametrize(
    ("values", "to", "expected"),
    [
        (pa.array([" 12 ", "-3", "x", "1.5", None, "+4"]), pa.int64(), [12, -3, None, None, None, 4]),
        (pa.array(["1.5", "1e3", "", "nan"]), pa.float64(), [1.5, 1000.0, None, None]),
        (pa.array([b"abc", b"\xff", None]), pa.string(), ["abc", None, None]),
        (pa.array([7, None]), pa.string(), ["7", None]),
        (pa.array([True]), pa.string(), ["true"]),
    ],
)
def test_a_cast_is_exact_or_null(values: pa.Array, to: pa.DataType, expected: list[object]) -> None:
    assert functions.cast(values, to).to_pylist() == expected


@pytest.mark.parametrize(
    "call",
    [
        lambda: FUNCTIONS["timestamp_millis"].compute([pa.array(["1"])]),
        lambda: FUNCTIONS["lower"].compute([pa.array([b"x"])]),
        lambda: FUNCTIONS["coalesce"].compute([pa.array([1]), pa.array(["a"])]),
        lambda: functions.arithmetic("+", pa.array(["a"]), pa.array([1])),
        lambda: functions.cast(pa.array([1]), pa.bool_()),
        lambda: functions.cast(pa.array([1.5]), pa.string()),
    ],
)
def test_types_that_do_not_fit_are_refused(call: object) -> None:
    with pytest.raises(UsageError):
        call()  # type: ignore[operator]
