"""What an appender must know of a partition: where it ends, and how far each producer has got.

The knowledge is rebuilt from a snapshot and the frames after it, so opening costs the same however
long the history is. Invariant: a snapshot only tells of frames that are durable, so a producer's
sequence is never believed to be stored when a crash has taken it back.
"""

from __future__ import annotations

import logging
import os
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import orjson

from headwater.errors import DamagedLog
from headwater.log.embedded import segment
from headwater.log.embedded.frame import Flag, Header, Kind
from headwater.log.embedded.segment import Damage, Segment

_log = logging.getLogger("headwater")

FORGET_MICROS = 7 * 86_400_000_000
"""After this long without a record an anonymous producer's sequence is forgotten."""


class ProducerState(NamedTuple):
    """How far one producer has got in one partition."""

    epoch: int
    last_sequence: int
    received: int


@dataclass
class Tail:
    """The end of a partition, as one appender knows it."""

    segment: Segment
    at: int = 0
    """Bytes of the active segment that hold whole batches."""
    end: int = 0
    """Offset the next record will get."""
    received: int = 0
    producers: dict[str, ProducerState] = field(default_factory=dict)
    indexed: int = 0
    """Place of the newest entry in the sparse index."""
    unsaved: int = 0
    """Frames since the last snapshot."""

    def take(self, at: int, header: Header) -> None:
        """Account for a frame that has been written or found."""
        self.at = at + header.size()
        self.end = header.last + 1
        self.received = max(self.received, header.received)
        self.unsaved += 1
        if header.kind != Kind.COMPACTED:
            before = self.producers.get(header.producer)
            last = (
                header.last_sequence if header.kind == Kind.DATA else before.last_sequence if before else -1
            )
            self.producers[header.producer] = ProducerState(header.epoch, last, header.received)

    def catch_up(self, fd: int, published: int) -> None:
        """Take in what others have appended; cut a torn end back to the last whole batch.

        Only bytes past the published end can be torn: damage before it is reported, not cut.
        """
        size = os.fstat(fd).st_size
        if size < published:
            raise lost_end(self.segment, size, published)
        whole: list[tuple[int, Header]] = []
        for at, found in segment.walk(fd, self.at, size):
            if isinstance(found, Damage):
                if at < published:
                    raise damaged(self.segment, found, self.end)
                break
            if at >= published and not _intact(fd, at, found):
                break
            whole.append((at, found))
            if not found.flags & Flag.MORE:
                for place, header in whole:
                    self.take(place, header)
                whole = []
        if size > self.at:
            _log.warning('cut %d bytes of an unfinished append off "%s"', size - self.at, self.segment.path)
            os.ftruncate(fd, self.at)

    def save(self, path: Path, sync: bool) -> None:
        """Write the snapshot; everything up to ``at`` must be durable."""
        oldest = self.received - FORGET_MICROS
        kept = {k: v for k, v in self.producers.items() if v.epoch > 0 or v.received >= oldest}
        told = {name: list(state) for name, state in kept.items()}
        body = orjson.dumps([self.segment.base, self.at, self.end, self.received, told])
        with open(path.with_suffix(".tmp"), "wb") as file:
            file.write(b"%08x" % zlib.crc32(body) + body)
            file.flush()
            if sync:
                os.fsync(file.fileno())
        os.replace(path.with_suffix(".tmp"), path)
        self.producers, self.unsaved = kept, 0


def load(directory: Path, active: Segment | None) -> Tail:
    """Return what the snapshot tells of the active segment, or what all segments tell without it."""
    segments = segment.listing(directory)
    active = active or (segments[-1] if segments else Segment(0, None, directory / segment.name(0)))
    saved = _snapshot(directory / "producers")
    if saved is not None and saved[0] == active.base:
        tail = Tail(active, *saved[1:4], saved[4])
    else:
        tail = Tail(active, end=active.base, producers=_rebuilt(segments, active))
    index = segment.entries(active)
    tail.indexed = index[-1].at if index else 0
    tail.unsaved = 0
    return tail


def _snapshot(path: Path) -> tuple[int, int, int, int, dict[str, ProducerState]] | None:
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    if len(data) < 8 or b"%08x" % zlib.crc32(data[8:]) != data[:8]:
        return None
    base, at, end, received, producers = orjson.loads(data[8:])
    return base, at, end, received, {k: ProducerState(*v) for k, v in producers.items()}


def _rebuilt(segments: list[Segment], active: Segment) -> dict[str, ProducerState]:
    """Walk every header before the active segment: slow, and only when the snapshot is unusable."""
    tail = Tail(active)
    for each in segments:
        if each.base < active.base:
            with open(each.path, "rb") as file:
                for at, found in segment.walk(file.fileno(), 0, os.fstat(file.fileno()).st_size):
                    if not isinstance(found, Damage):
                        tail.take(at, found)
    return tail.producers


def _intact(fd: int, at: int, header: Header) -> bool:
    payload = os.pread(fd, header.payload_size, at + header.size() - header.payload_size)
    return zlib.crc32(payload) == header.payload_checksum


def damaged(where: Segment, damage: Damage, expected: int, resume: int | None = None) -> DamagedLog:
    """Return the error for bytes in the middle of a segment that are no whole frame."""
    if resume is None:
        detail = f"records from offset {expected} on cannot be read; everything before it can"
        hint = (
            "run `headwater log verify` to see all damage, and restore the file from a copy if there is one"
        )
    else:
        detail = f"{resume - expected} records, offsets {expected} to {resume - 1}, cannot be read"
        hint = f"everything before and after can be read: go on from offset {resume}"
    return DamagedLog(
        f'log is damaged: file "{where.path}", bytes {damage.at} to {damage.until}',
        detail=detail,
        hint=hint,
        resume=resume,
    )


def lost_end(where: Segment, size: int, published: int) -> DamagedLog:
    """Return the error for a segment that is shorter than what was acknowledged."""
    return DamagedLog(
        f'log is damaged: file "{where.path}" has lost its end',
        detail=f"{published} bytes were acknowledged, {size} are there",
        hint="what is left can be read; restore the file from a copy, or export the topic and make it anew",
        resume=None,
    )
