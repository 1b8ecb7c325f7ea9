"""What a decision depends on: the events of one key, or those that have some tags.

Invariant: the conditions of a scope exclude every event that reading it would give.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from headwater.log.conditional import ConditionalProducer
from headwater.log.expected_version import Condition
from headwater.log.position import Position
from headwater.topic import Topic


class Scope(NamedTuple):
    """The events that a state is folded from: of a key, or with all tags of one of several lists."""

    key: str | None
    tags: tuple[tuple[str, ...], ...] = ()

    def conditions(self, version: int, topic: Topic) -> list[Condition]:
        """Return what must hold for a decision on the events before a version."""
        if self.key is not None:
            return [Condition(self.key, after=version)]
        return [
            Condition(tags=each, after=Position(topic.name, {0: version}, topic.id)) for each in self.tags
        ]

    def includes(self, tags: Collection[str]) -> bool:
        """Tell whether reading it would give an event of its key, or of any, that has some tags."""
        return self.key is not None or any(set(each) <= set(tags) for each in self.tags)

    def end(self, producer: ConditionalProducer) -> int:
        """Return a version before which all of its events lie; the same one if nothing has come."""
        return producer.version(self.key) if self.key is not None else producer.position().offsets[0]

    def rows(self, producer: ConditionalProducer, after: int, columns: Sequence[str]) -> list[dict[str, Any]]:
        """Return its events from a version on, in their order, each once."""
        if self.key is not None:
            return _rows(producer, columns, key=self.key, after=after)
        found: dict[int, dict[str, Any]] = {}
        for tags in self.tags:
            found |= {row["_offset"]: row for row in _rows(producer, columns, tags=tags, after=after)}
        return [found[offset] for offset in sorted(found)]


def _rows(producer: ConditionalProducer, columns: Sequence[str], **what: Any) -> list[dict[str, Any]]:
    batches = producer.read(meta=True, **what)
    return [
        row
        for batch in batches
        for row in batch.select([*columns, "_offset"]).to_pylist(maps_as_pydicts="strict")
    ]
