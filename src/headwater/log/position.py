"""Positions in a topic: what a producer reached, where a reader starts.

Invariant: an offset in a position is the next one to be read, never the last one that was; and a
position of one topic is never taken for one of a later topic of the same name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, NamedTuple

from headwater.durations import parse_instant
from headwater.errors import OffsetLost, UsageError
from headwater.topic import Topic
from headwater.topic_errors import replaced


@dataclass(frozen=True)
class Position:
    """How far something has got in a topic: for each partition the next offset to be read.

    A position that a log has given carries the topic's identity, and is refused where a topic of
    that name is another one; what a person types has none. It has a text form, so that it can
    travel in a URL or a header.

    >>> str(Position("orders", {0: 12, 1: 7}))
    'orders:0=12,1=7'
    >>> str(Position("orders", {0: 12, 1: 7}, id="8b1f"))
    'orders@8b1f:0=12,1=7'
    >>> Position.parse("orders@8b1f:0=12,1=7").offsets[1]
    7
    """

    topic: str
    offsets: Mapping[int, int] = field(default_factory=dict)
    id: str | None = None
    """The topic's identity, where it is known."""

    def __str__(self) -> str:
        return self.brief if self.id is None else f"{self.topic}@{self.id}:{self._offsets_text}"

    @property
    def brief(self) -> str:
        """The text as a person would type it: without the topic's identity."""
        return f"{self.topic}:{self._offsets_text}"

    @property
    def _offsets_text(self) -> str:
        return ",".join(f"{p}={o}" for p, o in sorted(self.offsets.items()))

    @classmethod
    def parse(cls, text: str) -> Position:
        """Read the text form."""
        name, _, rest = text.rpartition(":")
        topic, _, id = name.partition("@")
        try:
            pairs = (part.split("=") for part in rest.split(",") if part)
            return cls(topic, {int(p): int(o) for p, o in pairs}, id or None)
        except ValueError:
            raise UsageError(
                f'invalid position "{text}"', hint='a position looks like "orders:0=12,1=7"'
            ) from None

    def passed(self, other: Position) -> bool:
        """Tell whether everything before ``other`` lies before this position too."""
        return all(self.offsets.get(p, 0) >= offset for p, offset in other.offsets.items())


Start = Literal["earliest", "latest"] | int | datetime | Position
"""Where to read from: an end of the log, an offset, a time of receipt, or a position."""


class Extent(NamedTuple):
    """What a partition holds: offsets from its earliest up to, not with, its end."""

    earliest: int
    end: int


def check_start(to: Start, topic: Topic) -> None:
    """Refuse what is no start in a topic."""
    hint = 'use "earliest", "latest", an offset, a datetime or a Position'
    typed = isinstance(to, int | datetime | Position) and not isinstance(to, bool)
    if not typed and to not in ("earliest", "latest"):
        raise UsageError(f"cannot start at {to!r:.60}", hint=hint)
    if isinstance(to, int) and to < 0:
        raise UsageError(f"an offset is 0 or more, not {to}", hint=hint)
    if isinstance(to, Position):
        check_position(to, topic)


def check_position(position: Position, topic: Topic) -> None:
    """Refuse a position of another topic, and one of a topic that has had the same name."""
    if position.topic != topic.name:
        raise UsageError(
            f'position "{position.brief}" is of topic "{position.topic}", not "{topic.name}"',
            hint="take a position of this topic",
        )
    if position.id not in (None, topic.id):
        hint = 'start at "earliest" to read this topic from its beginning'
        raise replaced(topic, str(position.id), "this position", hint)
    for partition in position.offsets:
        check_partition(topic.name, partition, topic.partitions)


def check_partition(topic: str, partition: int, partitions: int) -> None:
    """Refuse a partition that a topic has not."""
    if not isinstance(partition, int) or not 0 <= partition < partitions:
        raise UsageError(
            f'topic "{topic}" has no partition {partition}', hint=f"it has {partitions}, from 0 on"
        )


def offsets_within(to: int | Position, topic: str, extents: Mapping[int, Extent]) -> dict[int, int]:
    """Return the offsets that a start stands for, or refuse one that a partition does not hold.

    A position stands for the earliest offset where it names no partition. A bare offset is meant
    for every partition, so one that is shorter stands at its end if another has got that far.
    """
    if isinstance(to, Position):
        wanted = {number: to.offsets.get(number, each.earliest) for number, each in extents.items()}
    else:
        far = to > max((each.end for each in extents.values()), default=0)
        wanted = {number: to if far else min(to, each.end) for number, each in extents.items()}
    for number, offset in wanted.items():
        check_within(topic, number, offset, extents[number])
    return wanted


def check_within(topic: str, partition: int, offset: int, extent: Extent) -> None:
    """Refuse an offset that retention has passed, and one that a partition has not reached."""
    if offset < extent.earliest:
        raise offset_lost(topic, partition, offset, extent.earliest)
    if offset > extent.end:
        raise _past_end(topic, partition, offset, extent)


def offset_lost(topic: str, partition: int, offset: int, earliest: int) -> OffsetLost:
    """Return the error for an offset that is no longer retained."""
    missed = max(0, earliest - offset)
    return OffsetLost(
        f'offset {offset} of topic "{topic}", partition {partition}, is no longer retained',
        detail=f"{_records(missed)} missed; the earliest is {earliest}",
        hint='go on with what is left: start="earliest", or for a group '
        f"`headwater seek GROUP {topic} --to earliest`",
        missed=missed,
        earliest=earliest,
    )


def _past_end(topic: str, partition: int, offset: int, extent: Extent) -> OffsetLost:
    missed = offset - extent.end
    return OffsetLost(
        f'offset {offset} of topic "{topic}", partition {partition}, is past the end',
        detail=f"the partition ends at {extent.end}: {_records(missed)} lost, or the offset is mistaken",
        hint="if the log has lost its end (an older copy, a broker's unclean election), bring that back, or "
        'read all of it again from "earliest"; "latest" goes on with what arrives',
        missed=missed,
        earliest=extent.earliest,
    )


def _records(count: int) -> str:
    return "1 record was" if count == 1 else f"{count} records were"


def seek_target(to: Start, resolved: Position) -> Position:
    """Return where a seek leads: a position moves only its own partitions."""
    wanted: Iterable[int] = to.offsets if isinstance(to, Position) else resolved.offsets
    return Position(resolved.topic, {p: resolved.offsets[p] for p in wanted}, resolved.id)


def start_text(to: Start) -> str:
    """Return a start as ``parse_start`` reads it."""
    return to.isoformat() if isinstance(to, datetime) else str(to)


def parse_start(text: str) -> Start:
    """Read a start as the command line takes it: an end, an offset, a time, or a position."""
    if "=" in text:
        return Position.parse(text)
    if text in ("earliest", "latest"):
        return text  # type: ignore[return-value]  # narrowed by the line above
    if text.isdecimal() and len(text) < 20 and int(text) < 1 << 63:  # no topic has offsets beyond
        return int(text)
    return parse_instant(text)
