"""A topic as a feed: its records by the offsets of all its partitions.

Invariant: an id names every partition, so one that was read to its end is not read again after a reconnect;
records of a partition keep their order.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from headwater.api.positions import parse_start
from headwater.errors import UsageError
from headwater.log import Log, Position
from headwater.serve.push.feed import Count, FeedChunk, Offsets, PushFeed, PushItem, PushSnapshot
from headwater.serve.push.filters import FilterTexts, PushFilter
from headwater.serve.push.record_json import encode_records

_ROWS, _BYTES = 1_000, 4 << 20
"""Of records that become JSON at once: how many, and how large they are together, about."""


@dataclass(frozen=True, slots=True)
class RecordItem(PushItem):
    """A record of a topic as JSON."""

    partition: int
    reached: int
    id: str
    whole: bytes
    row: dict[str, Any]
    """What filters look at: its columns that are not nested."""

    def data(self, filter: PushFilter) -> bytes | None:
        """Return the record, unless the filter leaves it out."""
        if filter.everything:
            return self.whole
        wanted = filter.partition in (None, self.partition) and filter.takes(self.row)
        return self.whole if wanted else None


class TopicFeed(PushFeed):
    """The records of a topic."""

    event = "record"

    def __init__(self, log: Log, topic: str):
        declared = log.topic(topic)
        self._log, self._topic, self._identity = log, topic, declared.id
        self.name = f"topic {topic}@{declared.id}"

    def filter(self, texts: FilterTexts) -> PushFilter:
        """Return a filter by columns, or by all of the key."""
        topic = self._log.topic(self._topic)
        return texts.read(f'topic "{topic.name}"', topic.read_schema, topic.key)

    def check(self, since: str) -> None:
        """Refuse what is no place in the topic."""
        parse_start(since)

    def resolve(self, since: str) -> Offsets:
        """Return the offsets that an id, an end, an offset or a time stands for."""
        return self._log.resolve(self._topic, parse_start(since)).offsets

    def id(self, offsets: Offsets) -> str:
        """Return the position as text."""
        return str(self._position(offsets))

    def about(self, offsets: Offsets) -> dict[str, Any]:
        """Return the position."""
        return {"position": self.id(offsets)}

    def newest(self) -> Offsets:
        """Return the end of each partition."""
        return self._log.resolve(self._topic, "latest").offsets

    def read(self, offsets: Offsets, filter: PushFilter) -> Iterator[FeedChunk]:
        """Yield the records after a position, up to where the partitions end now."""
        end = self.newest()
        batches = self._log.read(self._topic, None, self._position(offsets), self._position(end), meta=True)
        yield from self._chunks(batches, offsets, filter)
        # Compaction leaves gaps, also before the end.
        yield FeedChunk((), {**offsets, **end})

    def follow(self, offsets: Offsets, stop: threading.Event) -> Iterator[FeedChunk]:
        """Yield records as they are appended."""
        batches = self._log.read(self._topic, start=self._position(offsets), meta=True, follow=stop)
        yield from self._chunks(batches, offsets, PushFilter())

    def snapshot(self, filter: PushFilter, count: Count) -> PushSnapshot:
        """Refuse it: a topic has records, and no rows."""
        raise UsageError(
            f'topic "{self._topic}" has no rows to begin with', hint='take since="earliest" for all records'
        )

    def _position(self, offsets: Offsets) -> Position:
        return Position(self._topic, offsets, self._identity)

    def _chunks(
        self, batches: Iterator[pa.RecordBatch], offsets: Offsets, filter: PushFilter
    ) -> Iterator[FeedChunk]:
        for batch in batches:
            step = max(1, min(_ROWS, _BYTES * len(batch) // max(batch.nbytes, 1)))
            for at in range(0, len(batch), step):
                piece = batch.slice(at, step)
                partition, last = piece["_partition"][-1].as_py(), piece["_offset"][-1].as_py()
                items = self._items(piece, partition, offsets, filter)
                offsets = {**offsets, partition: last + 1}
                yield FeedChunk(items, offsets)

    def _items(
        self, batch: pa.RecordBatch, partition: int, offsets: Offsets, filter: PushFilter
    ) -> list[RecordItem]:
        if filter.partition not in (None, partition):
            return []
        rows, key = filter.select(batch), self._log.topic(self._topic).key
        reached = [offset + 1 for offset in rows["_offset"].to_pylist()]
        head, tail = self.id({**offsets, partition: -1}).split(f"{partition}=-1", 1)
        # One by one, for each becomes an event of its own; what is in them was encoded by columns.
        return [
            RecordItem(partition, next, f"{head}{partition}={next}{tail}", whole, row)
            for next, whole, row in zip(reached, encode_records(rows, key), _rows(rows), strict=True)
        ]


def _rows(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    names = [name for name in batch.schema.names if not pa.types.is_nested(batch.schema.field(name).type)]
    return list(batch.select(names).to_pylist())
