"""Clocks under their public name: the same as the modules behind it, with lengths as users write them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater import clock, device_clock, durations
from headwater.errors import HeadwaterError
from soaking import examples

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)
lengths = st.none() | st.timedeltas(timedelta(), timedelta(days=400))
times = st.datetimes(datetime(2000, 1, 1), datetime(2040, 1, 1)).map(lambda time: time.replace(tzinfo=UTC))


def test_its_names_are_those_of_durations() -> None:
    for name in set(clock.__all__) - {"correct"}:
        assert getattr(clock, name) is getattr(durations, name)


@examples(60)
@given(times, times, times, lengths, lengths)
def test_an_estimate_is_that_of_the_device_clock_with_bounds_in_microseconds(
    occurred: datetime,
    sent: datetime,
    received: datetime,
    delay: timedelta | None,
    offset: timedelta | None,
) -> None:
    micros = [None if each is None else each // timedelta(microseconds=1) for each in (delay, offset)]
    wanted = device_clock.correct(occurred, sent, received, device_clock.Bounds(*micros))
    assert clock.correct(occurred, sent, received, max_delay=delay, max_offset=offset) == wanted


def test_a_length_of_time_means_the_same_as_text_and_as_timedelta() -> None:
    late = AT + timedelta(minutes=5)
    written = clock.correct(AT, AT, late, max_delay="30 seconds", max_offset="4 minutes")
    counted = clock.correct(AT, AT, late, max_delay=timedelta(seconds=30), max_offset=timedelta(seconds=240))
    assert written == counted
    assert not written.trusted
    assert clock.correct(AT, AT, late, max_offset="5 minutes").trusted


def test_columns_come_back_as_a_column_of_four_fields() -> None:
    found = clock.correct(pa.array([AT, None]), pa.array([AT, AT]), AT)
    assert [field.name for field in found.type] == ["at", "earliest", "latest", "trusted"]
    assert found.field("trusted").to_pylist() == [True, False]


def test_a_length_that_is_none_is_refused() -> None:
    with pytest.raises(HeadwaterError):
        clock.correct(AT, AT, AT, max_delay="soon")
