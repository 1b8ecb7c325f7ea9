"""The reading side of a partition: published frames from an offset on, and the records in them.

A reader holds one open file and one block of bytes, whatever the size of the log, and writes
nothing. Invariant: records come in the order of their offsets, none skipped without an error.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater import record
from headwater.errors import DamagedLog
from headwater.log.embedded.partition import frame, head, segment, tail, times
from headwater.log.embedded.partition.frame import Flag, Header, Kind
from headwater.log.embedded.partition.head import Head
from headwater.log.embedded.partition.segment import Damage, Segment
from headwater.log.position import offset_lost
from headwater.schema import evolve
from headwater.topic import Topic

BLOCK = 1 << 20


class Frame(NamedTuple):
    """A published frame with its payload."""

    header: Header
    payload: bytes | memoryview


class FrameReader:
    """Reads published frames of one partition, from an offset on."""

    def __init__(self, directory: Path, offset: int):
        self.offset = offset
        """The next offset to be read."""
        self.directory = directory
        self._head = _open_head(directory)
        self._last_head: Head | None = None
        self._fd = -1
        self._segment: Segment | None = None
        self._finished: Path | None = None
        self._at = 0

    def head(self) -> Head:
        """Return how far the partition may be read."""
        published = _published(self._head)
        if published is None:  # damaged: the last good one holds until it is written again
            published = self._last_head or worked_out(self.directory)
        self._last_head = published
        return published

    def frames(self, size: int = BLOCK) -> list[Frame]:
        """Return the next frames, about ``size`` bytes of them; none when the end is reached."""
        published = self.head()
        while self.offset < published.end:
            if self._segment is None:
                self._open(published)
            assert self._segment is not None
            active = self._segment.base == published.segment
            there = os.fstat(self._fd).st_size
            found = self._collect(min(there, published.size) if active else there, size)
            if found:
                self.offset = found[-1].header.last + 1
                return found
            if active and there < published.size:
                raise tail.truncated(self._segment, there, published.size)
            if active:  # compaction has left nothing up to the end
                self.offset = published.end
            else:
                self._close_segment()
        return []

    def close(self) -> None:
        """Release the files."""
        for fd in (self._head, self._fd):
            if fd >= 0:
                os.close(fd)
        self._head = self._fd = -1

    def _open(self, published: Head) -> None:
        """Open the segment that holds the offset, and go to it."""
        for _ in range(10):  # a segment that is compacted away between listing and opening
            self._segment = self._covering(published)
            try:
                self._fd = os.open(self._segment.path, os.O_RDONLY)
            except FileNotFoundError:
                continue
            stop = os.fstat(self._fd).st_size
            self._at = segment.locate(self._fd, self._segment, stop, offset=self.offset)
            return
        raise FileNotFoundError(f"segment of offset {self.offset} in {self.directory}")

    def _covering(self, published: Head) -> Segment:
        segments = segment.listing(self.directory)
        before = [s for s in segments if s.base <= self.offset]
        if not before:
            earliest = segments[0].base if segments else published.end
            raise offset_lost(self.directory.parent.name, int(self.directory.name), self.offset, earliest)
        if before[-1].path == self._finished:  # read to its end, and the next one does not follow
            resume = min((s.base for s in segments if s.base > self.offset), default=None)
            raise tail.damaged(before[-1], Damage(self._at, self._at), self.offset, resume)
        return before[-1]

    def _close_segment(self) -> None:
        """Go on behind the end of a segment that is closed.

        What follows is found by offset, not by its index in a listing: compaction may have merged
        the neighbours meanwhile.
        """
        assert self._segment is not None
        self.offset = max(self.offset, self._segment.end or 0)
        self._finished = self._segment.path
        os.close(self._fd)
        self._fd, self._segment = -1, None

    def _collect(self, stop: int, size: int) -> list[Frame]:
        """Read frames from the current position up to ``stop``, about ``size`` bytes of them."""
        found: list[Frame] = []
        block, start = memoryview(b""), self._at
        while self._at < stop and self._at - start < size:
            at = self._at - start
            header = frame.unpack(block, at)
            if header is None or at + header.size() > len(block):
                need = max(size, header.size() if header else 0)
                if found:
                    break
                start, at = self._at, 0
                block = memoryview(os.pread(self._fd, min(need, stop - start), start))
                header = frame.unpack(block)
                if header is not None and header.size() > len(block):
                    block = memoryview(os.pread(self._fd, min(header.size(), stop - start), start))
            if header is None or header.size() > len(block) - at:
                return found or self._past_damage(stop, size)
            payload = block[at + header.size() - header.payload_size : at + header.size()]
            if header.last >= self.offset and header.rows:
                if zlib.crc32(payload) != header.payload_checksum:
                    return found or self._past_damage(stop, size, header.size())
                found.append(Frame(header, payload))
            self._at += header.size()
        return found

    def _past_damage(self, stop: int, size: int, skip: int = 0) -> list[Frame]:
        """Report bytes that are no frame; go on behind them if all they held lies before the offset."""
        assert self._segment is not None
        frames = segment.walk(self._fd, self._at + skip, stop)
        until, following = next(((at, h) for at, h in frames if not isinstance(h, Damage)), (stop, None))
        resume = following.base if isinstance(following, Header) else self._next_base()
        if resume is None or resume > self.offset:
            raise tail.damaged(self._segment, Damage(self._at, until), self.offset, resume)
        self._at = until
        return self._collect(stop, size)

    def _next_base(self) -> int | None:
        assert self._segment is not None
        later = [s.base for s in segment.listing(self.directory) if s.base > self._segment.base]
        return self._segment.end or (min(later) if later else None)


def published(directory: Path) -> Head | None:
    """Return how far a partition may be read, or None if its head is damaged or missing."""
    fd = _open_head(directory)
    try:
        return _published(fd)
    finally:
        if fd >= 0:
            os.close(fd)


def is_new(directory: Path) -> bool:
    """Tell whether nothing was ever appended to a partition: it has no segment, and its head is empty."""
    head = directory / "head"  # one of nothing but zeros was written, and lost
    return not segment.listing(directory) and not (head.exists() and head.stat().st_size)


def worked_out(directory: Path) -> Head:
    """Return how far whole batches reach, where the head cannot tell and may not be mended."""
    segments = segment.listing(directory)
    if not segments:
        if not is_new(directory):
            raise _unreadable_head(directory)
        return Head(0, 0, 0, 0)
    last = segments[-1]
    before = times.last_received(segments[-2], last.base) if len(segments) > 1 else None
    if last.end is not None:
        return Head(last.end, 0, last.end, times.last_received(last, last.end) or before or 0)
    reached = Head(last.base, 0, last.base, before or 0)
    for at, found in _intact_frames(last):
        if found is not None and not found.flags & Flag.MORE:
            reached = Head(last.base, at + found.size(), found.last + 1, found.received)
    size = os.stat(last.path).st_size
    if size and not reached.size:
        raise tail.damaged(last, Damage(0, size), last.base)
    return reached


def broken(directory: Path) -> bool:
    """Tell whether damage in the newest segment has whole frames behind it, so is no unfinished append."""
    hurt = False
    for each in segment.listing(directory)[-1:]:
        for _, found in _intact_frames(each):
            if hurt and found is not None:
                return True
            hurt = hurt or found is None
    return False


def _intact_frames(log_segment: Segment) -> Iterator[tuple[int, Header | None]]:
    """Yield position and header of each frame, its payload checked; None for one that is damaged."""
    with open(log_segment.path, "rb") as file:
        fd = file.fileno()
        for at, found in segment.walk(fd, 0, os.fstat(fd).st_size):
            intact = isinstance(found, Header) and segment.payload(fd, at, found) is not None
            yield at, found if intact and isinstance(found, Header) else None


def _open_head(directory: Path) -> int:
    try:
        return os.open(directory / "head", os.O_RDONLY)
    except FileNotFoundError:
        return -1


def _published(fd: int) -> Head | None:
    if fd < 0:
        return None
    empty = os.fstat(fd).st_size == 0  # nothing has been appended yet
    written = head.read(fd)
    return written.head if written else Head(0, 0, 0, 0) if empty else None


def _unreadable_head(directory: Path) -> DamagedLog:
    return DamagedLog(
        f'log is damaged: file "{directory / "head"}" cannot be read',
        detail="there is no segment either that would tell where the partition ends",
        hint="restore the directory from a copy",
        resume=None,
    )


def records(
    frames: Sequence[Frame], topic: Topic, number: int, bounds: tuple[int, int], meta: bool
) -> pa.RecordBatch:
    """Decode frames into one batch of the topic's current schema, cut to offsets within bounds."""
    batches = [_records(each, topic, number, bounds, meta) for each in frames]
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)


def _records(
    stored_frame: Frame, topic: Topic, number: int, bounds: tuple[int, int], meta: bool
) -> pa.RecordBatch:
    header = stored_frame.header
    batch = frame.decode(header, stored_frame.payload, topic.schemas[header.schema_version])
    if meta or topic.compacted:
        batch = _with_meta(batch, header, topic, number)
    if header.base < bounds[0] or header.last >= bounds[1]:
        batch = _cut(batch, header, bounds)
    return evolve(batch, record.read_schema(topic.schema, topic.compacted, meta))


def _cut(batch: pa.RecordBatch, header: Header, bounds: tuple[int, int]) -> pa.RecordBatch:
    if header.kind == Kind.COMPACTED:
        offset = batch.column("_offset")
        return batch.filter(pc.and_(pc.greater_equal(offset, bounds[0]), pc.less(offset, bounds[1])))
    start = max(bounds[0], header.base)
    return batch.slice(start - header.base, max(0, min(bounds[1], header.last + 1) - start))


def _with_meta(batch: pa.RecordBatch, header: Header, topic: Topic, number: int) -> pa.RecordBatch:
    """Give a batch the metadata that its frame holds once for all of its records."""
    count = header.rows
    stored = dict(zip(batch.schema.names, batch.columns, strict=True))
    columns = {f.name: stored[f.name] for f in topic.schemas[header.schema_version]}
    occurred = stored.get(topic.event_time or "") if "_occurred" not in stored else stored["_occurred"]
    if occurred is not None and "_occurred" in stored and topic.event_time:
        occurred = pc.coalesce(occurred, stored[topic.event_time].cast(record.META["_occurred"]))
    columns |= {
        record.DELETED: stored.get(record.DELETED, _repeat(False, count, record.DELETED)),
        "_partition": _repeat(number, count, "_partition"),
        "_offset": stored.get("_offset", _range(header.base, count)),
        "_occurred": _nulls(count, "_occurred")
        if occurred is None
        else occurred.cast(record.META["_occurred"]),
        "_sent": _sent(stored.get("_sent"), header),
        "_received": stored.get("_received", _repeat(header.received, count, "_received")),
        "_producer": stored.get("_producer", _repeat(header.producer, count, "_producer")),
        "_sequence": _sequences(stored, header),
        "_headers": stored.get("_headers", _nulls(count, "_headers")),
    }
    return pa.RecordBatch.from_pydict(columns)


def _sent(column: pa.Array | None, header: Header) -> pa.Array:
    if column is None:
        return _repeat(header.sent, header.rows, "_sent")
    return (
        column if header.kind == Kind.COMPACTED else pc.fill_null(column, pa.scalar(header.sent, column.type))
    )


def _sequences(stored: dict[str, pa.Array], header: Header) -> pa.Array:
    if header.flags & Flag.STEPS:
        return pc.cumulative_sum(stored["_steps"].cast(pa.int64()), header.first_sequence)
    if header.flags & Flag.SEQUENCE:
        return pc.add(stored["_sequence"].cast(pa.int64()), header.first_sequence)
    return stored.get("_sequence", _range(header.first_sequence, header.rows))


def _range(first: int, count: int) -> pa.Array:
    return pa.array(np.arange(first, first + count, dtype=np.int64))


def _nulls(count: int, name: str) -> pa.Array:
    return pa.nulls(count, record.META[name])


def _repeat(value: object, count: int, name: str) -> pa.Array:
    return pa.repeat(pa.scalar(value, record.META[name]), count)
