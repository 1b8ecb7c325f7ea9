"""The events of a decider as they come, for those who act upon them: read by a group, committed when done.

Invariant: an event is handed over until the position behind it has been committed, in the order of its key.
One that was not handled, or cannot be read, is the next to be handed over: nothing is committed past it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

import pyarrow as pa

from headwater.closing import Closing
from headwater.errors import Fenced, HeadwaterError
from headwater.log.consumer import Consumer
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


class _Unreadable(NamedTuple):
    """A record that was polled and cannot be read, and why."""

    partition: int
    offset: int
    error: Exception


class DeciderFeed(Closing):
    """Reads the events of a decider as a member of a group."""

    def __init__(self, log: Log, topic: str, schema: EventSchema, group: str):
        self._log, self._topic, self._schema, self._group = log, topic, schema, group
        self._consumer: Consumer | None = self._joined()
        self._unreadable: _Unreadable | None = None
        self.uncommitted = False
        """Whether records were polled, of events or of none, since the last commit."""

    def poll(self, timeout: float) -> list[PublishedEvent]:
        """Return the events that have come, after some seconds at the most; none only if nothing is there.

        Records that tell of no event are passed over, however many there are.

        Those before a record that cannot be read are handed over first; the next poll raises what is wrong
        with it, and the one after that tries it again.
        """
        if self._unreadable is not None:
            error = self._unreadable.error
            self._leave()
            raise error
        self._consumer = self._consumer or self._joined()
        deadline = time.monotonic() + timeout
        while (batch := self._consumer.poll(max(0.0, deadline - time.monotonic()))) is not None:
            self.uncommitted = True
            events = self._readable(batch)
            if events:
                return events
            if self._unreadable is not None:
                return self.poll(timeout)
        return []

    def position(self) -> Position:
        """Return the offsets behind what was polled, in the partitions that this member owns."""
        topic = self._log.topic(self._topic)
        offsets = {} if self._consumer is None else dict(self._consumer.position().offsets)
        if self._unreadable is not None and self._unreadable.partition in offsets:
            offsets[self._unreadable.partition] = self._unreadable.offset
        return Position(topic.name, offsets, topic.id)

    def commit(self, offsets: Mapping[int, int] | None = None) -> bool:
        """Commit what was polled, or up to offsets; tell whether the partitions were this member's still."""
        topic = self._log.topic(self._topic)
        upto = None if offsets is None else Position(topic.name, dict(offsets), topic.id)
        if upto is None and self._unreadable is not None:
            upto = self.position()
        try:
            if self._consumer is not None:
                self._consumer.commit(upto)
            self.uncommitted = False
        except Fenced:  # another member has them: what was done is known by its request ids
            return False
        return True

    def begin_again(self, unhandled: PublishedEvent) -> None:
        """Have the next poll begin at an event that was polled and could not be handled."""
        try:
            with suppress(HeadwaterError):  # then those before it are handed over again as well
                self.commit({unhandled.partition: unhandled.offset})
        finally:
            self._leave()

    def before(self) -> Iterator[PublishedEvent]:
        """Yield the events from the beginning up to what the group has committed."""
        committed = {each.partition: each.committed for each in self._lags()}
        for number, end in committed.items():
            for batch in self._log.read(self._topic, number, end=end, meta=True):
                yield from published(batch, self._schema)

    def behind(self) -> int:
        """Return how many records the group has yet to commit."""
        lags = self._lags()
        if not lags:  # nobody has committed anything
            ends = self._log.resolve(self._topic, "latest").offsets
            return sum(ends.values()) - sum(self._log.resolve(self._topic, "earliest").offsets.values())
        return sum(each.records for each in lags)

    def close(self) -> None:
        """Leave the group."""
        self._leave()

    def _joined(self) -> Consumer:
        return self._log.consumer(self._topic, self._group, meta=True)

    def _leave(self) -> None:
        """Leave the group until the next poll, which reads on from what is committed."""
        left, self._consumer, self._unreadable, self.uncommitted = self._consumer, None, None, False
        if left is not None:
            left.close()

    def _readable(self, batch: pa.RecordBatch) -> list[PublishedEvent]:
        """Return the events of records, up to one that cannot be read."""
        events: list[PublishedEvent] = []
        for row in batch.to_pylist(maps_as_pydicts="strict"):
            try:
                events += _of_row(row, self._schema)
            except Exception as error:  # an upcaster may raise anything
                self._unreadable = _Unreadable(row["_partition"], row["_offset"], error)
                break
        return events

    def _lags(self) -> list[Any]:
        known = self._group in self._log.groups()
        return [each for each in self._log.lag(self._group) if each.topic == self._topic] if known else []


def published(batch: pa.RecordBatch, schema: EventSchema) -> Iterator[PublishedEvent]:
    """Yield the events of records, as they are today."""
    for row in batch.to_pylist(maps_as_pydicts="strict"):
        yield from _of_row(row, schema)


def _of_row(row: Mapping[str, Any], schema: EventSchema) -> list[PublishedEvent]:
    about = (row["recorded_at"], row["request_id"], row["_partition"], row["_offset"])
    return [PublishedEvent(row["key"], event, *about) for event in schema.events(row)]
