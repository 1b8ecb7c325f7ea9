"""Retention: whole segments leave the log when they are too old or it is too large.

They are deleted, or moved to the archive as Parquet. Invariant: a segment goes only after every
older one, and never the active one.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from headwater import clock
from headwater.log import record
from headwater.log.embedded import archive, segment, times
from headwater.log.embedded.catalog import Stored
from headwater.log.embedded.partition import Partition
from headwater.log.embedded.segment import Segment
from headwater.log.embedded.stream import RecordReader


def enforce(root: Path, stored: Stored, number: int, partition: Partition) -> None:
    """Let go of what the topic's retention no longer covers."""
    topic = stored.topic
    if topic.retention is None and topic.retention_bytes is None:
        return
    oldest = clock.now() - topic.retention // clock.MICROSECOND if topic.retention else None
    with partition.locked():
        partition.refresh()
        holds_records = partition.tail.end > partition.tail.segment.base
        if oldest is not None and holds_records and partition.tail.received < oldest:
            partition.roll()
        active = partition.tail.segment.base
    for each, following in _expired(stored.partition(number), active, oldest, topic.retention_bytes):
        if topic.archive is not None:
            _move(root, stored, number, (each.base, following))
        each.path.unlink()
        each.index_path.unlink(missing_ok=True)


def _expired(
    directory: Path, active: int, oldest: int | None, limit: int | None
) -> Iterator[tuple[Segment, int]]:
    """Yield closed segments that must go, oldest first, each with the base of the one after it."""
    segments = segment.listing(directory)
    total = sum(os.stat(s.path).st_size for s in segments)
    bases = [*(s.base for s in segments), active][1:]
    for each, following in zip(segments, bases, strict=True):
        if each.base >= active:
            return
        too_old = oldest is not None and (times.last_received(each) or 0) < oldest
        if not too_old and (limit is None or total <= limit):
            return
        total -= os.stat(each.path).st_size
        yield each, following


def _move(root: Path, stored: Stored, number: int, bounds: tuple[int, int]) -> None:
    place = archive.directory(root, stored.topic, number)
    assert place is not None
    schema = record.read_schema(stored.topic.schema, stored.topic.compacted, meta=True)
    archive.store(place, *bounds, _records(root, stored, number, bounds), schema)


def _records(root: Path, stored: Stored, number: int, bounds: tuple[int, int]) -> Iterator[pa.RecordBatch]:
    source = RecordReader(root, lambda: stored, number, bounds[0], meta=True)
    try:
        while (batch := source.next(bounds[1])) is not None:
            yield batch
    finally:
        source.close()
