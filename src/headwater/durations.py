"""Points and lengths of time as users write them, and as the log stores them.

Invariant: inside Headwater a time is an integer of microseconds since 1970 UTC, and a length of
time a ``timedelta``; strings and datetimes are read here and nowhere else.
"""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime, timedelta
from fractions import Fraction

from headwater.errors import UsageError

_MICROSECONDS = {
    "microsecond": 1,
    "millisecond": 1_000,
    "second": 1_000_000,
    "minute": 60_000_000,
    "hour": 3_600_000_000,
    "day": 86_400_000_000,
    "week": 604_800_000_000,
}
_PART = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-z]+?)s?(?=[\s\d,]|$)[\s,]*", re.IGNORECASE)


MICROSECOND = timedelta(microseconds=1)
LONGEST = timedelta(days=365_000)
"""About a thousand years: now, less an interval, is always a time that can be written."""


def now() -> int:
    """Return the current time in microseconds since 1970 UTC.

    >>> now() > micros(datetime(2026, 1, 1))
    True
    """
    return time.time_ns() // 1000


def interval(text: str | timedelta) -> timedelta:
    """Read a Spark interval string, or check a ``timedelta``: positive, and not over ``LONGEST``.

    - ``text``: numbers and units from microseconds to weeks, ``"1 hour 30 minutes"``; or a ``timedelta``.

    >>> interval("7 days"), interval("1 hour 30 minutes")
    (datetime.timedelta(days=7), datetime.timedelta(seconds=5400))
    """
    try:
        length = text if isinstance(text, timedelta) else timedelta(microseconds=_microseconds(text))
    except OverflowError:
        length = timedelta.max
    if length <= timedelta():
        raise UsageError(f'interval "{text}" is not a positive length of time')
    if length > LONGEST:
        raise UsageError(
            f'interval "{text!s:.60}" is too long',
            detail=f"the longest one is {LONGEST.days:,} days",
            hint="leave the setting out where there is no limit",
        )
    return length


def span(text: str | timedelta) -> timedelta:
    """Read a length of time as ``interval`` does, but one that may be nothing.

    - ``text``: as for ``interval``, or ``"0 seconds"``.

    >>> span("0 seconds"), span("2 minutes")
    (datetime.timedelta(0), datetime.timedelta(seconds=120))
    """
    nothing = text == timedelta() if isinstance(text, timedelta) else _microseconds(text) == 0
    return timedelta() if nothing else interval(text)


def _microseconds(text: str) -> int:
    # Whole numbers throughout: what interval_text has written is read back to the microsecond.
    rest = re.sub(r"^\s*interval\s+", "", text, flags=re.IGNORECASE) if isinstance(text, str) else ""
    total = Fraction()
    while part := _PART.match(rest):
        if part[2].lower() not in _MICROSECONDS or len(part[1]) > 40:
            break
        total += Fraction(part[1]) * _MICROSECONDS[part[2].lower()]
        rest = rest[part.end() :]
    if rest or not isinstance(text, str):
        raise UsageError(
            f'invalid interval "{text!s:.60}"',
            hint='write a number and a unit, as in "7 days", "1 hour 30 minutes" or "200 milliseconds"',
        )
    return round(total)


def interval_text(length: timedelta) -> str:
    """Write a length of time so that ``interval`` reads it back, in its largest whole unit.

    - ``length``: a ``timedelta``.

    >>> interval_text(timedelta(days=7))
    '7 days'
    """
    micros = length // MICROSECOND
    for unit in ("day", "hour", "minute", "second", "millisecond", "microsecond"):
        size = _MICROSECONDS[unit]
        if micros % size == 0:
            count = micros // size
            return f"{count} {unit}{'' if count == 1 else 's'}"
    raise AssertionError("unreachable: microseconds divide every timedelta")


def micros(at: datetime) -> int:
    """Return a datetime as microseconds since 1970.

    - ``at``: a datetime; one without a zone is taken as UTC.

    >>> micros(datetime(1970, 1, 1, 0, 0, 1))
    1000000
    """
    if at.tzinfo is None:
        at = at.replace(tzinfo=UTC)
    return (at - datetime(1970, 1, 1, tzinfo=UTC)) // MICROSECOND


def instant(at: int) -> datetime:
    """Return microseconds since 1970 as an aware datetime in UTC.

    - ``at``: the microseconds.

    >>> str(instant(1_000_000))
    '1970-01-01 00:00:01+00:00'
    """
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=at)


def parse_instant(text: str) -> datetime:
    """Read an ISO 8601 time, or ``"10 minutes ago"``.

    - ``text``: ``"2026-01-02T03:04:05Z"``, ``"2026-01-02"``, or an interval and ``ago``. Without a zone it
      is UTC.

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
