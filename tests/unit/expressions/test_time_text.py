"""Text becomes a time, or none."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.errors import UsageError
from headwater.expressions import time_text

TIMES = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30))
OFFSETS = st.integers(-18 * 60, 18 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))


def times(*texts: str | None, pattern: str | None = None) -> list[datetime | None]:
    found: list[datetime | None] = time_text.times(pa.array(texts, pa.string()), pattern).to_pylist()
    return found


@given(TIMES, OFFSETS)
def test_iso_text_of_any_time_and_offset_is_that_time(moment: datetime, zone: timezone) -> None:
    local = moment.replace(tzinfo=zone)
    assert times(local.isoformat()) == [local.astimezone(UTC)]


@given(TIMES)
def test_a_pattern_reads_back_what_strftime_has_written(moment: datetime) -> None:
    written = f"{moment.day:02}.{moment.month:02}.{moment.year:04} {moment.time().isoformat('milliseconds')}"
    whole = moment.replace(microsecond=moment.microsecond // 1000 * 1000, tzinfo=UTC)
    assert times(written, pattern="dd.MM.yyyy HH:mm:ss.SSS") == [whole]


@pytest.mark.parametrize(
    ("text", "pattern"),
    [
        ("29.02.2026", "dd.MM.yyyy"),
        ("2026-13-01", "yyyy-MM-dd"),
        ("2026-01-00", "yyyy-MM-dd"),
        ("2026-01-01 24:00", "yyyy-MM-dd HH:mm"),
        ("2026-01-01 13:00 PM", "yyyy-MM-dd hh:mm a"),
        ("2026-1-1", "yyyy-MM-dd"),
        ("2026-01-01x", "yyyy-MM-dd"),
        ("2026-01-01T00:00:00+19:00", None),
        ("yesterday", None),
        ("", None),
    ],
)
def test_what_is_no_time_is_none_and_disturbs_no_other(text: str, pattern: str | None) -> None:
    good = {"dd.MM.yyyy": "01.03.2026", "yyyy-MM-dd": "2026-03-01"}.get(pattern or "")
    assert times(text, None, pattern=pattern) == [None, None]
    if good is not None:
        assert times(text, good, pattern=pattern)[1] == datetime(2026, 3, 1, tzinfo=UTC)


def test_names_of_months_halves_of_days_quotes_and_optional_parts() -> None:
    assert times("7 Mar 2026, 09:05 pm", pattern="d MMM yyyy, hh:mm a") == [
        datetime(2026, 3, 7, 21, 5, tzinfo=UTC)
    ]
    assert times("12 AM 01/02/2026", pattern="h a dd/MM/yyyy") == [datetime(2026, 2, 1, tzinfo=UTC)]
    both = times("2026-03-07T10", "2026-03-07", pattern="yyyy-MM-dd['T'HH]")
    assert both == [datetime(2026, 3, 7, 10, tzinfo=UTC), datetime(2026, 3, 7, tzinfo=UTC)]
    assert times("2026-03-07 10:00 +0130", pattern="yyyy-MM-dd HH:mm Z") == [
        datetime(2026, 3, 7, 8, 30, tzinfo=UTC)
    ]


@pytest.mark.parametrize("pattern", ["yyyy-qq", "HH:mm", "yyyy yyyy", "yyyy-MM-dd VV"])
def test_a_pattern_that_cannot_be_meant_is_refused(pattern: str) -> None:
    with pytest.raises(UsageError):
        time_text.regular_expression(pattern)
