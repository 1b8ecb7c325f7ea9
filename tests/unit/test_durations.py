from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater import durations
from headwater.errors import UsageError


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("1 day", timedelta(days=1)),
        ("2 weeks", timedelta(weeks=2)),
        ("INTERVAL 90 Minutes", timedelta(minutes=90)),
        ("1 hour 30 minutes", timedelta(minutes=90)),
        ("1.5 seconds", timedelta(seconds=1.5)),
        ("200 milliseconds", timedelta(milliseconds=200)),
    ],
)
def test_intervals_are_read_as_spark_writes_them(text: str, length: timedelta) -> None:
    assert durations.interval(text) == length


@pytest.mark.parametrize("text", ["", "soon", "7", "7 dys", "days", "-1 day", "0 seconds", "1 day and"])
def test_other_intervals_are_refused(text: str) -> None:
    with pytest.raises(UsageError):
        durations.interval(text)


@pytest.mark.parametrize("length", [timedelta(), timedelta(days=-1), timedelta.max, timedelta.min])
def test_a_length_that_is_not_positive_or_far_too_long_is_refused(length: timedelta) -> None:
    with pytest.raises(UsageError):
        durations.interval(length)


@pytest.mark.parametrize("text", ["99999999999 weeks", "9" * 5000 + " days", "9" * 39 + " days ago"])
def test_an_interval_too_long_to_reckon_with_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        durations.interval(text)
    with pytest.raises(UsageError):
        durations.parse_instant(f"{text} ago")


@given(st.timedeltas(min_value=timedelta(microseconds=1), max_value=durations.LONGEST))
def test_a_length_is_written_so_that_it_reads_back(length: timedelta) -> None:
    assert durations.interval(durations.interval_text(length)) == length


@given(st.datetimes(timezones=st.just(UTC), min_value=datetime(1900, 1, 1), max_value=datetime(2200, 1, 1)))
def test_an_instant_survives_storage(at: datetime) -> None:
    assert durations.instant(durations.micros(at)) == at


def test_times_without_a_zone_are_utc() -> None:
    assert durations.parse_instant("2026-01-02T03:04") == datetime(2026, 1, 2, 3, 4, tzinfo=UTC)
    ago = datetime.now(UTC) - durations.parse_instant("10 minutes ago")
    assert timedelta(minutes=9) < ago < timedelta(minutes=11)
    with pytest.raises(UsageError, match="invalid time"):
        durations.parse_instant("tomorrow")
