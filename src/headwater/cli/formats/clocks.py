"""The clocks of nodes, for people and for scripts.

A clock is what producers have promised, and they may promise anything. Invariant: a time that no
calendar has is told as none, not as an error.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from headwater.cli.formats import units
from headwater.durations import instant
from headwater.engine.home.checkpoint import Ahead


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


def ahead_texts(found: Iterable[Ahead]) -> list[str]:
    """Return which producers' clocks are not believed: each once, however many nodes read them."""
    furthest: dict[tuple[str, str], int] = {}
    for ahead in found:
        key = (ahead.topic, ahead.producer)
        furthest[key] = max(furthest.get(key, 0), ahead.by)
    return [_ahead_text(topic, producer, by) for (topic, producer), by in sorted(furthest.items())]


def _ahead_text(topic: str, producer: str, by: int) -> str:
    who = f'producer "{producer}"' if producer else "a producer"
    far = units.length(timedelta(microseconds=by))
    return f'{who} of topic "{topic}" is {far} ahead of time; its events count from their receipt'
