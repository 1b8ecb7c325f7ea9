"""Sizes, counts and lengths of time as people read them."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from decimal import Decimal

from headwater.errors import UsageError

_UNITS = {
    **{name: 1000**power for power, name in enumerate(("b", "kb", "mb", "gb", "tb"))},
    **{name: 1024**power for power, name in enumerate(("", "kib", "mib", "gib", "tib"))},
}


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

    >>> plural(1, "row"), plural(12_000, "row"), plural(2, "batch")
    ('1 row', '12,000 rows', '2 batches')
    """
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
