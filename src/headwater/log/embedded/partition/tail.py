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
from headwater.log.embedded.partition import head, segment
from headwater.log.embedded.partition.frame import Flag, Header, Kind
from headwater.log.embedded.partition.segment import Damage, Segment

_log = logging.getLogger("headwater")

FORGET_MICROS = 3_600_000_000
"""After this long without a record an anonymous producer is forgotten: none retries that late."""


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
    """Position of the newest entry in the sparse index."""
    unsaved: int = 0
    """Frames since the last snapshot."""

    def take(self, at: int, header: Header) -> None:
        """Account for a frame that has been written or found."""
        self.at = at + header.size()
        self.end = header.last + 1
        self.received = header.received
        self.unsaved += 1
        if header.kind != Kind.COMPACTED:
            last = header.last_sequence if header.kind == Kind.DATA else header.previous_sequence
            self.producers[header.producer] = ProducerState(header.epoch, last, header.received)

    def catch_up(self, fd: int, published: int, has_head: bool) -> None:
        """Take in what others have appended; cut a torn end back to the last whole batch.

        Damage before the published end is reported and not cut. What lies behind that end was not
        acknowledged, or a power loss has taken back the head that said so: then it was synced, and
        with it all before it. So a hole there is one that was not synced, and whole frames behind it
        were not either; they go with it. Without a head to say where the end is (``has_head``), they are
        reported.
        """
        size = os.fstat(fd).st_size
        if size < published:
            raise truncated(self.segment, size, published)
        whole: list[tuple[int, Header]] = []
        for at, found in segment.walk(fd, self.at, size):
            if isinstance(found, Damage) or (at >= published and segment.payload(fd, at, found) is None):
                until = found.until if isinstance(found, Damage) else at + found.size()
                if at < published or (until < size and not has_head):
                    raise damaged(self.segment, Damage(at, until), self.end)
                break
            whole.append((at, found))
            if not found.flags & Flag.MORE:
                for start, header in whole:
                    self.take(start, header)
                whole = []
        if size > self.at:
            _log.warning('cut %d bytes of an unfinished append off "%s"', size - self.at, self.segment.path)
            os.ftruncate(fd, self.at)

    def save(self, directory: Path, sync: bool) -> None:
        """Write the snapshot of the active segment; everything up to ``at`` must be durable."""
        oldest = self.received - FORGET_MICROS
        self.producers = {k: v for k, v in self.producers.items() if v.epoch > 0 or v.received >= oldest}
        producers = {name: list(state) for name, state in self.producers.items()}
        boot = "" if sync else head.boot().hex()
        body = orjson.dumps([self.segment.base, boot, self.at, self.end, self.received, producers])
        path = directory / snapshot_name(self.segment.base)
        # Not ``durable.write``: a snapshot that a power loss takes back only costs a walk over frames.
        with open(path.with_suffix(".draft"), "wb") as file:
            file.write(b"%08x" % zlib.crc32(body) + body)
            file.flush()
            if sync:
                os.fsync(file.fileno())
        os.replace(path.with_suffix(".draft"), path)
        self.unsaved = 0


def snapshot_name(base: int) -> str:
    """Return the name of the snapshot of the segment that begins at an offset."""
    return f"{base:020d}.producers"


def forget_snapshots(directory: Path, before: int) -> None:
    """Remove the snapshots of segments that begin before an offset."""
    for path in _snapshots(directory):
        if int(path.stem) < before:
            path.unlink(missing_ok=True)


def load(directory: Path, active: Segment) -> Tail:
    """Return what is known of the active segment's end from the newest snapshot that can be trusted.

    An older one is carried on by walking the segments after it; without any, all are walked.
    """
    earlier = [path for path in _snapshots(directory) if int(path.stem) <= active.base]
    trusted = (tail for path in reversed(earlier) if (tail := _snapshot(path, directory)) is not None)
    tail = next(trusted, Tail(Segment(-1, None, directory)))
    if tail.segment.base != active.base:
        tail = Tail(active, end=active.base, received=tail.received, producers=_replayed(tail, active))
    index = segment.entries(active)
    tail.indexed = index[-1].at if index else 0
    return tail


def _snapshots(directory: Path) -> list[Path]:
    """Return the snapshots, oldest first: one for the active segment and one for that before it."""
    return sorted(path for path in directory.glob("*.producers") if path.stem.isdigit())


def _snapshot(path: Path, directory: Path) -> Tail | None:
    """Read a snapshot; one that a power loss may have overtaken, or that is damaged, does not count."""
    data = path.read_bytes()
    if len(data) < 8 or b"%08x" % zlib.crc32(data[8:]) != data[:8]:
        return None
    base, boot, at, end, received, producers = orjson.loads(data[8:])
    file = directory / segment.name(base)
    if (boot and boot != head.boot().hex()) or at > (file.stat().st_size if file.exists() else 0):
        return None
    states = {name: ProducerState(*state) for name, state in producers.items()}
    return Tail(Segment(base, None, file), at, end, received, states)


def _replayed(snapshot: Tail, active: Segment) -> dict[str, ProducerState]:
    """Carry a snapshot on to the active segment, by the headers of all frames in between."""
    for each in segment.listing(active.path.parent):
        if snapshot.segment.base <= each.base < active.base:
            with open(each.path, "rb") as file:
                start = snapshot.at if each.base == snapshot.segment.base and each.end is None else 0
                for at, found in segment.walk(file.fileno(), start, os.fstat(file.fileno()).st_size):
                    if not isinstance(found, Damage):
                        snapshot.take(at, found)
    return snapshot.producers


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


def truncated(where: Segment, size: int, published: int) -> DamagedLog:
    """Return the error for a segment that is shorter than what was acknowledged."""
    return DamagedLog(
        f'log is damaged: file "{where.path}" has lost its end',
        detail=f"{published} bytes were acknowledged, {size} are there",
        hint="what is left can be read; restore the file from a copy, or export the topic and make it anew",
        resume=None,
    )
