"""Sizes, counts and lengths of time as people read them."""

from __future__ import annotations

from datetime import datetime, timedelta


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


def plural(count: int, noun: str) -> str:
    """Return a count with its noun.

    >>> plural(1, "row"), plural(12_000, "row")
    ('1 row', '12,000 rows')
    """
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


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
