"""Offsets by time of receipt, and the times of a partition's ends.

Times of receipt never go back within a segment, so a time is found by its segment, the sparse
index, and a short walk over headers. Where a clock that was ahead was corrected between segments,
what is found lies no later than every record with a right time. The header of a compacted frame has
the newest time only, so there the records are looked at.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from headwater.log.embedded.partition import frame, segment
from headwater.log.embedded.partition.frame import Header, Kind
from headwater.log.embedded.partition.head import Head
from headwater.log.embedded.partition.segment import Damage, Segment
from headwater.topic import Topic


def first_received(log_segment: Segment, topic: Topic) -> int | None:
    """Return when the first readable record of a segment was received."""
    with open(log_segment.path, "rb") as file:
        fd = file.fileno()
        for at, found in _filled(fd, 0, os.fstat(fd).st_size):
            return _at_offset(fd, at, found, topic, found.base)
    return None


def last_received(log_segment: Segment, following: int) -> int | None:
    """Return when the last record of a closed segment was received, or None if its end is unreadable.

    ``following`` is the base of the next segment: frames that end before it are not the last ones.
    """
    newest = None
    with open(log_segment.path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        start = segment.locate(file.fileno(), log_segment, size, offset=1 << 62)
        for _, found in segment.walk(file.fileno(), start, size):
            whole = not isinstance(found, Damage) and (
                log_segment.end is not None or found.last + 1 == following
            )
            newest = found.received if whole and isinstance(found, Header) else None
    return newest


def offset_at(directory: Path, published: Head, received: int, topic: Topic) -> int:
    """Return the offset of the first record received at a time or later."""
    if received > published.received:
        return published.end
    candidates: list[Segment] = []
    for each in reversed(segment.listing(directory)):  # times near the end are asked for most
        candidates.insert(0, each)
        if (first_received(each, topic) or received) < received:
            break
    for each in candidates:
        for fd, at, found in _frames(each, published, received=received):
            if found.received >= received:
                return _at_time(fd, at, found, topic, received)
    return published.end


def received_at(directory: Path, published: Head, offset: int, topic: Topic) -> int | None:
    """Return when the record at an offset, or the next one after it, was received."""
    segments = segment.listing(directory)
    covering = [s for s in segments if s.base <= offset][-1:]
    for each in covering + [s for s in segments if s.base > offset]:
        for fd, at, found in _frames(each, published, offset=offset):
            if found.last >= offset:
                return _at_offset(fd, at, found, topic, offset)
    return None


def _frames(log_segment: Segment, published: Head, **target: int) -> Iterator[tuple[int, int, Header]]:
    """Yield the open file, position and header of each frame with records, from a target on."""
    with open(log_segment.path, "rb") as file:
        fd = file.fileno()
        size = published.size if log_segment.base == published.segment else os.fstat(fd).st_size
        for at, found in _filled(fd, segment.locate(fd, log_segment, size, **target), size):
            yield fd, at, found


def _filled(fd: int, start: int, stop: int) -> Iterator[tuple[int, Header]]:
    """Yield the readable headers that have records."""
    for at, found in segment.walk(fd, start, stop):
        if isinstance(found, Header) and found.rows:
            yield at, found


def _at_time(fd: int, at: int, header: Header, topic: Topic, received: int) -> int:
    """Return the first offset of a frame that was received at a time or later."""
    rows = _compacted(fd, at, header, topic)
    if rows is None:
        return header.base
    later = rows.filter(pc.greater_equal(rows.column("_received").cast(pa.int64()), received))
    return int(later.column("_offset")[0].as_py())


def _at_offset(fd: int, at: int, header: Header, topic: Topic, offset: int) -> int:
    """Return when a frame's record at an offset, or the next one in it, was received."""
    rows = _compacted(fd, at, header, topic)
    if rows is None:
        return header.received
    later = rows.filter(pc.greater_equal(rows.column("_offset"), offset))
    return int(later.column("_received").cast(pa.int64())[0].as_py())


def _compacted(fd: int, at: int, header: Header, topic: Topic) -> pa.RecordBatch | None:
    """Return a compacted frame's records; None for other frames, and for damaged ones."""
    if header.kind != Kind.COMPACTED:
        return None
    payload = segment.payload(fd, at, header)
    return None if payload is None else frame.decode(header, payload, topic.schemas[header.schema_version])
