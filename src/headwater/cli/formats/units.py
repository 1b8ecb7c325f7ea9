"""Sizes, counts and lengths of time as people read them."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from headwater.errors import UsageError

_UNITS = {
    **{name: 1000**power for power, name in enumerate(("b", "kb", "mb", "gb", "tb"))},
    **{name: 1024**power for power, name in enumerate(("", "kib", "mib", "gib", "tib"))},
}

_SAME_YEAR = timedelta(days=330)
"""How far off a day may be that is told without its year."""


def size(count: int | None) -> str:
    """Return a number of bytes in its unit.

    >>> size(999), size(12_345_678), size(None)
    ('999 B', '12.3 MB', 'size unknown')
    """
    if count is None:
        return "size unknown"
    if count < 1000:
        return f"{count} B"
    value = float(count)
    for unit in ("kB", "MB", "GB"):
        value /= 1000
        if value < 999.95:
            return f"{value:.1f} {unit}"
    return f"{value / 1000:.1f} TB"


def parse_size(text: str) -> int:
    """Read a number of bytes, in a unit or without.

    >>> parse_size("1000000"), parse_size("1.5 GB"), parse_size("64MiB")
    (1000000, 1500000000, 67108864)
    """
    parts = re.fullmatch(r"\s*([0-9][0-9_]*(?:\.[0-9]+)?)\s*([A-Za-z]*)\s*", text)
    unit = _UNITS.get(parts[2].lower()) if parts else None
    if parts is None or unit is None:
        raise UsageError(f'invalid size "{text}"', hint='write bytes, as 1000000, or a unit, as "1 GB"')
    return int(Decimal(parts[1]) * unit)


def plural(count: int, noun: str) -> str:
    """Return a count with its noun.

    >>> plural(1, "row"), plural(12_000, "row"), plural(2, "batch"), plural(3, "delivery")
    ('1 row', '12,000 rows', '2 batches', '3 deliveries')
    """
    if noun.endswith("ry") and count != 1:
        return f"{count:,} {noun.removesuffix('y')}ies"
    ending = "" if count == 1 else "es" if noun.endswith("ch") else "s"
    return f"{count:,} {noun}{ending}"


def length(time: timedelta) -> str:
    """Return a length of time in its two largest units.

    >>> length(timedelta(days=2, hours=3, seconds=4)), length(timedelta(milliseconds=250))
    ('2 d 3 h', '0.25 s')
    """
    seconds = time.total_seconds()
    if seconds < 60:
        return f"{seconds:.2f}".rstrip("0").rstrip(".") + " s"
    parts = []
    for unit, each in (("d", 86400), ("h", 3600), ("min", 60), ("s", 1)):
        count, seconds = divmod(seconds, each)
        if count:
            parts.append(f"{count:.0f} {unit}")
    return " ".join(parts[:2])


def moment(at: datetime | None) -> str:
    """Return a time in UTC to the second; "-" when there is none."""
    return "-" if at is None else at.strftime("%Y-%m-%d %H:%M:%SZ")


def short_moment(at: datetime | None, now: datetime | None = None) -> str:
    """Return a time in UTC as short as it can be told apart from now: the time, the day, or the date.

    >>> now = datetime(2026, 3, 1, 12, tzinfo=UTC)
    >>> [short_moment(at, now) for at in (now, now - timedelta(days=40), now - timedelta(days=400))]
    ['12:00:00', '01-20 12:00', '2025-01-25']
    """
    if at is None:
        return ""
    now = now or datetime.now(UTC)
    if at.date() == now.date():
        return f"{at:%H:%M:%S}"
    return f"{at:%m-%d %H:%M}" if abs(now - at) < _SAME_YEAR else f"{at:%Y-%m-%d}"


def age(micros: int) -> str:
    """Return a length of time in its largest unit.

    >>> age(90_000_000), age(7_400_000)
    ('1 min', '7 s')
    """
    return " ".join(length(timedelta(seconds=round(micros / 1e6))).split()[:2])
