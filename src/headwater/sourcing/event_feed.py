"""The events of a decider as they come, for those who act upon them: read by a group, committed when done.

Invariant: an event is handed over until the position behind it has been committed, in the order of its key.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pyarrow as pa

from headwater.closing import Closing
from headwater.errors import Fenced
from headwater.log.interface import Log
from headwater.log.position import Position
from headwater.sourcing.event_schema import EventSchema


@dataclass(frozen=True)
class PublishedEvent:
    """An event as those see it who act upon it."""

    key: str
    """Of the aggregate that it happened to."""
    event: Any
    recorded_at: datetime
    request_id: str | None
    """Of the command that led to it."""
    partition: int
    offset: int


class DeciderFeed(Closing):
    """Reads the events of a decider as a member of a group."""

    def __init__(self, log: Log, topic: str, schema: EventSchema, group: str):
        self._log, self._topic, self._schema, self._group = log, topic, schema, group
        self._consumer = log.consumer(topic, group, meta=True)

    def poll(self, timeout: float) -> list[PublishedEvent]:
        """Return the events that have come, after some seconds at the most."""
        batch = self._consumer.poll(timeout)
        return [] if batch is None else list(published(batch, self._schema))

    def position(self) -> Position:
        """Return the offsets behind what was polled, in the partitions that this member owns."""
        return self._consumer.position()

    def commit(self, offsets: Mapping[int, int] | None = None) -> bool:
        """Commit what was polled, or up to offsets; tell whether the partitions were this member's still."""
        topic = self._log.topic(self._topic)
        try:
            self._consumer.commit(None if offsets is None else Position(topic.name, dict(offsets), topic.id))
        except Fenced:  # another member has them: what was done is known by its request ids
            return False
        return True

    def before(self) -> Iterator[PublishedEvent]:
        """Yield the events from the beginning up to what the group has committed."""
        committed = {each.partition: each.committed for each in self._lags()}
        for number, end in committed.items():
            for batch in self._log.read(self._topic, number, end=end, meta=True):
                yield from published(batch, self._schema)

    def close(self) -> None:
        """Leave the group."""
        self._consumer.close()

    def _lags(self) -> list[Any]:
        known = self._group in self._log.groups()
        return [each for each in self._log.lag(self._group) if each.topic == self._topic] if known else []


def published(batch: pa.RecordBatch, schema: EventSchema) -> Iterator[PublishedEvent]:
    """Yield the events of records, as they are today."""
    for row in batch.to_pylist():
        for event in schema.events(row):
            yield PublishedEvent(
                row["key"], event, row["recorded_at"], row["request_id"], row["_partition"], row["_offset"]
            )
