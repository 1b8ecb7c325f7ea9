"""Places in a topic: what a producer reached, where a reader starts.

Invariant: an offset in a position is the next one to be read, never the last one that was.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from headwater.clock import parse_instant
from headwater.errors import UsageError


@dataclass(frozen=True)
class Position:
    """How far something has got in a topic: for each partition the next offset to be read.

    It has a text form, so that it can travel in a URL or a header.

    >>> str(Position("orders", {0: 12, 1: 7}))
    'orders:0=12,1=7'
    >>> Position.parse("orders:0=12,1=7").offsets[1]
    7
    """

    topic: str
    offsets: Mapping[int, int] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.topic}:" + ",".join(f"{p}={o}" for p, o in sorted(self.offsets.items()))

    @classmethod
    def parse(cls, text: str) -> Position:
        """Read the text form."""
        topic, _, rest = text.rpartition(":")
        try:
            pairs = (part.split("=") for part in rest.split(",") if part)
            return cls(topic, {int(p): int(o) for p, o in pairs})
        except ValueError:
            raise UsageError(
                f'invalid position "{text}"', hint='a position looks like "orders:0=12,1=7"'
            ) from None

    def passed(self, other: Position) -> bool:
        """Tell whether everything before ``other`` lies before this position too."""
        return all(self.offsets.get(p, 0) >= offset for p, offset in other.offsets.items())


Start = Literal["earliest", "latest"] | int | datetime | Position
"""Where to read from: an end of the log, an offset, a time of receipt, or a position."""


def check_start(to: Start, topic: str, partitions: int) -> None:
    """Refuse what is no place in a topic."""
    hint = 'use "earliest", "latest", an offset, a datetime or a Position'
    known = isinstance(to, int | datetime | Position) and not isinstance(to, bool)
    if not known and to not in ("earliest", "latest"):
        raise UsageError(f"cannot start at {to!r:.60}", hint=hint)
    if isinstance(to, int) and to < 0:
        raise UsageError(f"an offset is 0 or more, not {to}", hint=hint)
    if isinstance(to, Position):
        if to.topic != topic:
            raise UsageError(f'position "{to}" is of topic "{to.topic}", not "{topic}"')
        for partition in to.offsets:
            check_partition(topic, partition, partitions)


def check_partition(topic: str, partition: int, partitions: int) -> None:
    """Refuse a partition that a topic has not."""
    if not isinstance(partition, int) or not 0 <= partition < partitions:
        raise UsageError(
            f'topic "{topic}" has no partition {partition}', hint=f"it has {partitions}, from 0 on"
        )


def moved(to: Start, resolved: Position, ends: Position) -> Position:
    """Return where a seek leads: a position moves only its own partitions, and none past its end."""
    wanted = to.offsets.keys() if isinstance(to, Position) else resolved.offsets.keys()
    place = Position(resolved.topic, {p: resolved.offsets[p] for p in wanted if p in resolved.offsets})
    for partition, offset in place.offsets.items():
        if offset > ends.offsets[partition]:
            raise UsageError(
                f'offset {offset} is past the end of partition {partition} of topic "{resolved.topic}"',
                detail=f"its end is {ends.offsets[partition]}",
                hint='use "latest" to go to the end',
            )
    return place


def place_text(to: Start) -> str:
    """Return a start as ``parse_start`` reads it."""
    return to.isoformat() if isinstance(to, datetime) else str(to)


def parse_start(text: str) -> Start:
    """Read a start as the command line takes it: an end, an offset, a time, or a position."""
    if "=" in text:
        return Position.parse(text)
    if text in ("earliest", "latest"):
        return text  # type: ignore[return-value]  # narrowed by the line above
    if text.isdecimal():
        return int(text)
    return parse_instant(text)
