"""The clocks of nodes, for people."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

from headwater import ClockSkew
from headwater.cli.formats import units


def ahead_texts(producers: Iterable[ClockSkew]) -> list[str]:
    """Return which producers' clocks are not believed: each once, however many nodes read them."""
    furthest: dict[tuple[str, str], int] = {}
    for ahead in producers:
        key = (ahead.topic, ahead.producer)
        furthest[key] = max(furthest.get(key, 0), ahead.by)
    return [_ahead_text(topic, producer, by) for (topic, producer), by in sorted(furthest.items())]


def _ahead_text(topic: str, producer: str, by: int) -> str:
    who = f'producer "{producer}"' if producer else "a producer"
    far = units.length(timedelta(microseconds=by))
    return f'{who} of topic "{topic}" is {far} ahead of time; its events count from their receipt'
