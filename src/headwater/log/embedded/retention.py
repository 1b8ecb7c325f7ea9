"""Retention: whole segments leave the log when they are too old or it is too large.

They are deleted, or moved to the archive as Parquet. An active segment whose newest record is too
old is closed first. Invariant: a segment goes only after every older one, and none goes that is
active, or holds a record within the retention.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from headwater import durable, durations, record
from headwater.log.embedded import archive
from headwater.log.embedded.catalog import StoredTopic
from headwater.log.embedded.partition import segment, times
from headwater.log.embedded.partition.received_time import SKEW
from headwater.log.embedded.partition.segment import Segment
from headwater.log.embedded.partition.writer import Partition
from headwater.log.embedded.stream import RecordReader
from headwater.topic import Topic


def enforce(root: Path, stored: StoredTopic, number: int, partition: Partition, fsync: bool) -> None:
    """Let go of what the topic's retention no longer covers."""
    topic = stored.topic
    if topic.retention is None and topic.retention_bytes is None:
        return
    with partition.locked():
        partition.refresh()
        now = partition.now()
        oldest = now - topic.retention // durations.MICROSECOND if topic.retention else None
        holds_records = partition.tail.end > partition.tail.segment.base
        if oldest is not None and holds_records and partition.tail.received < oldest:
            partition.roll()
        active = partition.tail.segment.base
    directory = stored.partition(number)
    for each, following in _expired(directory, active, topic, oldest, now):
        if topic.archive is not None:
            _archive(root, stored, number, (each.base, following))
        each.path.unlink()
        each.index_path.unlink(missing_ok=True)
        if fsync:  # so that a power loss brings back no older segment without the newer ones
            durable.sync(directory)


def _expired(
    directory: Path, active: int, topic: Topic, oldest: int | None, now: int
) -> Iterator[tuple[Segment, int]]:
    """Yield closed segments that must go, oldest first, each with the base of the one after it."""
    segments = segment.listing(directory)
    limit = topic.retention_bytes
    total = sum(os.stat(s.path).st_size for s in segments)
    for index, each in enumerate(segments):
        if each.base >= active:
            return
        later = segments[index + 1 :]
        following = later[0].base if later else active
        newest = _newest(each, following, later, topic, now) if oldest is not None else None
        too_old = oldest is not None and newest is not None and newest < oldest
        if not too_old and (limit is None or total <= limit):
            return
        total -= os.stat(each.path).st_size
        yield each, following


def _newest(log_segment: Segment, following: int, later: list[Segment], topic: Topic, now: int) -> int | None:
    """Return a time before which all of a segment was received; None if nothing tells, and it stays.

    Where its end is damaged, or of a clock that was ahead, it was received no later than what came next.
    """
    newest = times.last_received(log_segment, following)
    if newest is not None and newest <= now + SKEW:
        return newest
    beginnings = (times.first_received(each, topic) for each in later)
    return next((at for at in beginnings if at is not None and at <= now + SKEW), newest)


def _archive(root: Path, stored: StoredTopic, number: int, bounds: tuple[int, int]) -> None:
    directory = archive.partition_directory(root, stored, number)
    assert directory is not None
    schema = record.read_schema(stored.topic.schema, stored.topic.compacted, meta=True)
    records = RecordReader(root, lambda: stored, number, bounds[0], meta=True).until(bounds[1])
    archive.store(directory, *bounds, records, schema)
