"""Appends that are asked for, each with what must hold for it: checked in order, as if one after the other.

Invariant: a proposal that is accepted is in the index before the next one is checked, so that two that
exclude each other are never both accepted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import pyarrow as pa

from headwater.errors import Conflict, TopicError
from headwater.log.position import Position
from headwater.log.tag_index import TagIndex
from headwater.topic import Topic


@dataclass(frozen=True)
class Condition:
    """What must hold for an append: no record with this key and all of these tags came since.

    - ``key=None``: the key's value, a tuple of several; any key if None.
    - ``tags=()``: texts that such a record has, all of them.
    - ``after=0``: since when: a version, the offset behind the newest record that is known; of tags alone in
      a topic of several partitions, a ``Position``. With 0 no such record may ever have come.

    >>> Condition(key="ada", after=12)
    Condition(key='ada', tags=(), after=12)
    """

    key: Any = None
    tags: Sequence[str] = ()
    after: int | Position = 0


class Check(NamedTuple):
    """A condition as the index looks it up."""

    condition: Condition
    tags: tuple[bytes, ...]
    after: Mapping[int, int]
    """For each partition that can hold such a record, the offset from which on there may be none."""


class Proposal(NamedTuple):
    """Rows of one partition that are to be appended, whole or not at all."""

    partition: int
    tags: Sequence[Sequence[bytes]]
    """Of each row, its key among them."""
    checks: Sequence[Check]

    @property
    def partitions(self) -> set[int]:
        """The partitions that must not change while this is decided."""
        return {self.partition, *(number for check in self.checks for number in check.after)}


class Outgoing(NamedTuple):
    """The rows of several proposals, one after the other, as they will be stored."""

    batch: pa.RecordBatch
    headers: pa.Array | None
    topic: Topic
    sent: int


class ConditionalAppender(Protocol):
    """What a backend does for a ``ConditionalProducer``."""

    id: str

    def topic(self) -> Topic:
        """Return the topic as it is declared now; refuse one whose records would not all stay."""

    def append(self, proposals: Sequence[Proposal], rows: Outgoing) -> list[int | Conflict]:
        """Append what is accepted, durably; return the first offset of each, or its conflict."""

    def ends(self) -> dict[int, int]:
        """Return where each partition ends, of what is durable."""

    def newest(self, tags: Sequence[bytes], after: Mapping[int, int]) -> dict[int, int]:
        """Return the newest offset with all the tags, in each of these partitions that has one."""

    def read(self, tags: Sequence[bytes], after: Mapping[int, int], meta: bool) -> Iterable[pa.RecordBatch]:
        """Return the records with all the tags, from an offset on in each of these partitions."""

    def close(self) -> None:
        """Release what the appender holds."""


def decide(
    index: TagIndex, proposals: Sequence[Proposal], ends: Mapping[int, int], topic: str
) -> list[int | Conflict]:
    """Return the first offset that each proposal gets, or why it is refused; what is accepted is indexed."""
    following, made = dict(ends), list[int | Conflict]()
    for each in proposals:
        conflict = next((found for check in each.checks if (found := _conflict(index, check, topic))), None)
        if conflict is None:
            base = following[each.partition]
            index.add(each.partition, base, each.tags)
            following[each.partition] = base + len(each.tags)
        made.append(conflict or base)
    return made


def _conflict(index: TagIndex, check: Check, topic: str) -> Conflict | None:
    for partition, after in check.after.items():
        newest = index.newest(check.tags, partition, after)
        if newest is not None:
            return _refusal(check.condition, topic, partition, newest)
    return None


def moved(topic: Topic) -> TopicError:
    """Return the error for a topic that has got partitions, so that keys have changed theirs."""
    return TopicError(
        f'topic "{topic.name}" has got more partitions since records were appended under conditions',
        detail="a key's records would lie in two partitions, and its version in neither",
        hint="make a new topic with as many partitions, and copy the records in their order",
    )


def _refusal(condition: Condition, topic: str, partition: int, offset: int) -> Conflict:
    what = [] if condition.key is None else [f"key {condition.key!r:.80}"]
    what += ["tags " + ", ".join(f'"{tag:.80}"' for tag in condition.tags)] if condition.tags else []
    after = condition.after.brief if isinstance(condition.after, Position) else condition.after
    return Conflict(
        f'append to topic "{topic}" is refused: another record came first',
        detail=f"{' with '.join(what)}, none from {after} on: partition {partition}, offset {offset} is one",
        hint="read what has come, decide again, and append with the version of then",
        condition=condition,
        partition=partition,
        offset=offset,
    )
