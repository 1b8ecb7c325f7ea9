"""Points and lengths of time as users write them, and as the log stores them.

Invariant: inside Headwater a time is an integer of microseconds since 1970 UTC, and a length of
time a ``timedelta``; strings and datetimes are read here and nowhere else.
"""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime, timedelta

from headwater.errors import UsageError

_SECONDS = {
    "microsecond": 1e-6,
    "millisecond": 1e-3,
    "second": 1,
    "minute": 60,
    "hour": 3600,
    "day": 86400,
    "week": 604800,
}
_PART = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-z]+?)s?(?=[\s\d,]|$)[\s,]*", re.IGNORECASE)


MICROSECOND = timedelta(microseconds=1)


def now() -> int:
    """Return the current time in microseconds since 1970 UTC."""
    return time.time_ns() // 1000


def interval(text: str | timedelta) -> timedelta:
    """Read a Spark interval string.

    >>> interval("7 days"), interval("1 hour 30 minutes")
    (datetime.timedelta(days=7), datetime.timedelta(seconds=5400))
    """
    if isinstance(text, timedelta):
        return text
    rest = re.sub(r"^\s*interval\s+", "", text, flags=re.IGNORECASE)
    total = timedelta()
    while rest:
        part = _PART.match(rest)
        if part is None or part[2].lower() not in _SECONDS:
            raise UsageError(
                f'invalid interval "{text}"',
                hint='write a number and a unit, as in "7 days", "1 hour 30 minutes" or "200 milliseconds"',
            )
        total += timedelta(seconds=float(part[1]) * _SECONDS[part[2].lower()])
        rest = rest[part.end() :]
    if total <= timedelta():
        raise UsageError(f'interval "{text}" is not a positive length of time')
    return total


def interval_text(length: timedelta) -> str:
    """Write a length of time so that ``interval`` reads it back, in its largest whole unit.

    >>> interval_text(timedelta(days=7))
    '7 days'
    """
    micros = length // MICROSECOND
    for unit in ("day", "hour", "minute", "second", "millisecond", "microsecond"):
        size = round(_SECONDS[unit] * 1_000_000)
        if micros % size == 0:
            count = micros // size
            return f"{count} {unit}{'' if count == 1 else 's'}"
    raise AssertionError("unreachable: microseconds divide every timedelta")


def micros(at: datetime) -> int:
    """Return a datetime as microseconds since 1970; one without a zone is taken as UTC."""
    if at.tzinfo is None:
        at = at.replace(tzinfo=UTC)
    return (at - datetime(1970, 1, 1, tzinfo=UTC)) // MICROSECOND


def instant(at: int) -> datetime:
    """Return microseconds since 1970 as an aware datetime in UTC."""
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=at)


def parse_instant(text: str) -> datetime:
    """Read an ISO 8601 time, or ``"10 minutes ago"``.

    >>> parse_instant("2026-01-02T03:04:05Z")
    datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.timezone.utc)
    """
    if text.strip().lower().endswith(" ago"):
        return instant(now()) - interval(text.strip()[:-4])
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(
            f'invalid time "{text}"',
            hint='write ISO 8601, as in "2026-01-02T03:04:05Z" or "2026-01-02", or "10 minutes ago"',
        ) from None
    return at if at.tzinfo else at.replace(tzinfo=UTC)
