"""Python's values in a topic's types: kept exactly, or refused."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.schema import TIMESTAMP
from headwater.values.columns import REFUSALS, Misfit, column
from headwater.values.python_values import FORM

REFUSED = (Misfit, *REFUSALS)
numbers = st.integers(-(2**65), 2**65) | st.integers(-200, 200)
fractions = st.floats() | st.decimals("-1e30", "1e30") | st.decimals(-99, 99, places=2)
times = st.datetimes() | st.datetimes(timezones=st.just(UTC)) | st.dates()
others = st.booleans() | st.text("ab", max_size=2) | st.binary(max_size=2)
TAKEN = {pa.bool_(): bool, pa.string(): str, pa.binary(): bytes}


def kept(values: list[Any], kind: pa.DataType) -> list[Any]:
    return list(column(values, kind, FORM).to_pylist())


@given(numbers | fractions | st.booleans(), st.sampled_from([pa.int8(), pa.int64()]))
def test_a_number_in_a_whole_column_is_the_same_number_or_refused(value: Any, kind: pa.DataType) -> None:
    bound = 2 ** (kind.bit_width - 1)
    whole = (
        not isinstance(value, bool) and value == value and abs(value) != float("inf") and int(value) == value
    )
    if whole and -bound <= value < bound:
        assert kept([None, value], kind) == [None, value]
    else:
        with pytest.raises(REFUSED):
            kept([None, value], kind)


@given(numbers | fractions)
def test_a_number_in_a_decimal_column_is_the_one_that_is_written_or_refused(value: Any) -> None:
    exact = Decimal(str(value))
    if exact.is_finite() and abs(exact) < 10**6 and exact * 1000 % 1 == 0:
        assert kept([value], pa.decimal128(9, 3)) == [exact]
    else:
        with pytest.raises(REFUSED):
            kept([value], pa.decimal128(9, 3))


@given(numbers | fractions | times | others)
def test_text_bytes_and_truth_are_taken_from_their_own_type_alone(value: Any) -> None:
    for kind, taken in TAKEN.items():
        if type(value) is taken:
            assert kept([value], kind) == [value]
        else:
            with pytest.raises(Misfit, match="is not taken for it"):
                kept([value], kind)


BERLIN = timezone(timedelta(hours=1))
AT = datetime(2026, 1, 2, 3, tzinfo=UTC)


def test_a_time_keeps_its_instant_and_a_column_without_zone_takes_none() -> None:
    assert kept([AT.astimezone(BERLIN)], TIMESTAMP) == [AT]
    assert kept([np.datetime64("2026-01-02T03", "us")], pa.timestamp("us")) == [AT.replace(tzinfo=None)]
    assert kept([AT], pa.timestamp("us")) == [AT.replace(tzinfo=None)]
    with pytest.raises(Misfit, match="time zone"):
        kept([AT.astimezone(BERLIN)], pa.timestamp("us"))
    with pytest.raises(Misfit, match="nanoseconds"):
        kept([np.datetime64("2026-01-02T03:04:05.000000001")], TIMESTAMP)
    with pytest.raises(Misfit, match="no time"):
        kept([np.datetime64("NaT")], TIMESTAMP)


@pytest.mark.parametrize("unit", ["h", "m", "s", "ms", "us", "ns"])
def test_a_time_of_numpy_in_any_unit_keeps_its_instant_in_any_column(unit: Any) -> None:
    value, other = np.datetime64("2026-01-02T03", unit), AT + timedelta(days=1)
    assert kept([value, None, other], TIMESTAMP) == [AT, None, other]
    assert kept([value], pa.timestamp("us")) == [AT.replace(tzinfo=None)]


def test_a_time_of_numpy_that_microseconds_cannot_count_is_refused() -> None:
    with pytest.raises(Misfit, match="further away"):
        kept([np.datetime64(10**9, "Y")], TIMESTAMP)


def test_a_date_takes_a_midnight_and_no_other_time_of_day() -> None:
    assert kept([date(2026, 1, 2), datetime(2026, 1, 2)], pa.date32()) == [date(2026, 1, 2)] * 2
    with pytest.raises(Misfit, match="time of day"):
        kept([datetime(2026, 1, 2, 0, 0, 1)], pa.date32())


def test_lists_may_be_tuples_or_numpys_but_no_text_and_maps_pairs() -> None:
    assert kept([[1], (2,), np.array([3, 4])], pa.list_(pa.int64())) == [[1], [2], [3, 4]]
    with pytest.raises(Misfit):
        kept(["ab"], pa.list_(pa.string()))
    assert kept([{"a": 1}, [("b", 2)]], pa.map_(pa.string(), pa.int8())) == [[("a", 1)], [("b", 2)]]
