"""Segments: the files of a partition, their names, their sparse index, and walks over their frames.

A segment's name is its base offset; one that compaction has rewritten also names the offset up to
which it stands for all records: ``base-end.log``. It takes the place of whatever lies in that
range, so one rename switches readers over, and leftovers of a crash are ignored.

Invariant: ``listing`` returns segments that together cover each retained offset exactly once.
"""

from __future__ import annotations

import os
import re
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from headwater.log.embedded.partition import frame
from headwater.log.embedded.partition.frame import Header

INDEX_EVERY = 1 << 18
_ENTRY = struct.Struct("<qqq")
_READ = 1 << 13
_NAME = re.compile(r"(\d{20})(?:-(\d{20}))?\.log")


class Segment(NamedTuple):
    """One file of a partition."""

    base: int
    end: int | None
    """For a compacted segment, the offset up to which it stands for all records."""
    path: Path

    @property
    def index_path(self) -> Path:
        """The sparse index beside the segment; a help that may be missing or stale."""
        return self.path.with_suffix(".idx")


class IndexEntry(NamedTuple):
    """One line of the sparse index."""

    base: int
    at: int
    received: int


class Damage(NamedTuple):
    """Bytes of a segment that are no frame, up to the next one or the end of what was walked."""

    at: int
    until: int


def name(base: int, end: int | None = None) -> str:
    """Return a segment's file name."""
    return f"{base:020d}.log" if end is None else f"{base:020d}-{end:020d}.log"


def listing(directory: Path) -> list[Segment]:
    """Return the segments in force, oldest first."""
    return _in_force(_all(directory))


def superseded(directory: Path) -> list[Segment]:
    """Return segments whose place a compacted one has taken."""
    every = _all(directory)
    return sorted(set(every) - set(_in_force(every)), key=lambda each: (each.base, each.path.name))


def _all(directory: Path) -> list[Segment]:
    """Return every segment there is; files of other names are somebody else's."""
    names = (_NAME.fullmatch(name) for name in os.listdir(directory))
    return [Segment(int(m[1]), int(m[2]) if m[2] else None, directory / m[0]) for m in names if m]


def _in_force(segments: list[Segment]) -> list[Segment]:
    in_force: list[Segment] = []
    covered = -1
    for segment in sorted(segments, key=lambda s: (s.base, -(s.end or 0))):
        if segment.base >= covered:
            in_force.append(segment)
            covered = max(covered, segment.end or 0)
    return in_force


def walk(fd: int, start: int, stop: int) -> Iterator[tuple[int, Header | Damage]]:
    """Yield position and header of each frame between two positions, and damage where there is none.

    Payloads are skipped, not read. A frame that does not fit before ``stop`` is damage.
    """
    block, block_at = b"", start
    at = start
    while at < stop:
        if at + frame.HEADER_MAX > block_at + len(block):
            block, block_at = os.pread(fd, min(_READ, stop - at), at), at
        header = frame.unpack(block, at - block_at)
        if header is None or at + header.size() > stop:
            until = _resync(fd, at + 1, stop)
            yield at, Damage(at, until)
            at = until
        else:
            yield at, header
            at += header.size()


def payload(fd: int, at: int, header: Header) -> bytes | None:
    """Return the payload of the frame at a position in a file, or None if its checksum does not match."""
    data = os.pread(fd, header.payload_size, at + header.size() - header.payload_size)
    return data if zlib.crc32(data) == header.payload_checksum else None


def _resync(fd: int, at: int, stop: int) -> int:
    """Return the position of the next whole frame, or ``stop``."""
    while at < stop:
        block = os.pread(fd, min(1 << 20, stop - at), at)
        if not block:
            return stop
        found = block.find(frame.MAGIC)
        while found >= 0:
            header = frame.unpack(os.pread(fd, frame.HEADER_MAX, at + found))
            if header is not None and at + found + header.size() <= stop:
                return at + found
            found = block.find(frame.MAGIC, found + 1)
        at += max(1, len(block) - len(frame.MAGIC) + 1)
    return stop


def add_entry(segment: Segment, entry: IndexEntry) -> None:
    """Append a line to the sparse index."""
    with open(segment.index_path, "ab") as file:
        file.write(_ENTRY.pack(*entry))


def entries(segment: Segment) -> list[IndexEntry]:
    """Return the sparse index; lines are hints, to be checked against the frames they name."""
    try:
        data = segment.index_path.read_bytes()
    except FileNotFoundError:
        return []
    whole = len(data) - len(data) % _ENTRY.size
    return [IndexEntry(*_ENTRY.unpack_from(data, at)) for at in range(0, whole, _ENTRY.size)]


def locate(
    fd: int, segment: Segment, stop: int, *, offset: int | None = None, received: int | None = None
) -> int:
    """Return where to start walking to reach an offset, or a time of receipt."""
    for entry in reversed(entries(segment)):
        before = (offset is None or entry.base <= offset) and (received is None or entry.received < received)
        if before and 0 <= entry.at < stop and _confirmed(fd, entry):
            return entry.at
    return 0


def _confirmed(fd: int, entry: IndexEntry) -> bool:
    """Tell whether the frame that a line of the index names is there."""
    header = frame.unpack(os.pread(fd, frame.HEADER_MAX, entry.at))
    return header is not None and (header.base, header.received) == (entry.base, entry.received)
