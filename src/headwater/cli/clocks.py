"""The clocks of nodes, for people and for scripts.

A clock is what producers have promised, and they may promise anything. Invariant: a time that no
calendar has is told as none, not as an error.
"""

from __future__ import annotations

from datetime import datetime

from headwater.clock import instant


def readable(clock: int | None) -> datetime | None:
    """Return microseconds since 1970 as a time in UTC."""
    try:
        return None if clock is None else instant(clock)
    except OverflowError:
        return None


def written(clock: int | None) -> str | None:
    """Return microseconds since 1970 as ISO 8601.

    >>> written(1_767_323_045_000_000)
    '2026-01-02T03:04:05Z'
    """
    at = readable(clock)
    return None if at is None else at.isoformat().replace("+00:00", "Z")
