"""Frames by where they lie: one at a byte, and those between two places, whole segments on the way.

For those who keep where frames begin, and so need no search. Invariant: a frame that does not match its
checksums is reported, and never returned.
"""

from __future__ import annotations

import os
import zlib
from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from headwater.log.embedded.partition import frame, segment, tail
from headwater.log.embedded.partition.frame import Header
from headwater.log.embedded.partition.reader import Frame
from headwater.log.embedded.partition.segment import Damage, Segment

_AHEAD = 1 << 12
_OPEN_FILES = 8


class PlacedFrame(NamedTuple):
    """A frame, and where it was found."""

    segment: int
    at: int
    header: Header
    payload: bytes | memoryview


class FrameFiles:
    """The segments of one partition, a few of them held open; none of them may be removed meanwhile."""

    def __init__(self, directory: Path):
        self._directory = directory
        self._files: OrderedDict[int, int] = OrderedDict()

    def at(self, base: int, at: int, offset: int) -> Frame:
        """Return the frame at a byte of a segment; ``offset`` is for the error if there is none."""
        found = self._read(base, at)
        if found is None:
            where = Segment(base, None, self._directory / segment.name(base))
            raise tail.damaged(where, Damage(at, at + 1), offset)
        return Frame(found.header, found.payload)

    def header(self, base: int, at: int) -> Header | None:
        """Return the header of the frame at a byte of a segment, if one is there."""
        try:
            return frame.unpack(os.pread(self._file(base), frame.HEADER_MAX, at))
        except FileNotFoundError:
            return None

    def between(self, base: int, at: int, last: int, end: int) -> Iterator[PlacedFrame]:
        """Yield the frames from a byte of a segment up to, not with, a byte of the same or a later one."""
        offset = base
        while (base, at) < (last, end):
            stop = end if base == last else os.fstat(self._file(base)).st_size
            while at < stop:
                found = self._read(base, at)
                if found is None:
                    where = Segment(base, None, self._directory / segment.name(base))
                    raise tail.damaged(where, Damage(at, stop), offset)
                yield found
                at += found.header.size()
                offset = found.header.last + 1
            if base < last:
                base, at = self._following(base), 0

    def close(self) -> None:
        """Release the files."""
        for fd in self._files.values():
            os.close(fd)
        self._files.clear()

    def _following(self, base: int) -> int:
        return min(each.base for each in segment.listing(self._directory) if each.base > base)

    def _read(self, base: int, at: int) -> PlacedFrame | None:
        fd = self._file(base)
        block = os.pread(fd, _AHEAD, at)
        header = frame.unpack(block)
        if header is None:
            return None
        if header.size() > len(block):
            block = os.pread(fd, header.size(), at)
        payload = memoryview(block)[header.size() - header.payload_size : header.size()]
        intact = len(payload) == header.payload_size and zlib.crc32(payload) == header.payload_checksum
        return PlacedFrame(base, at, header, payload) if intact else None

    def _file(self, base: int) -> int:
        fd = self._files.get(base)
        if fd is None:
            fd = self._files[base] = os.open(self._directory / segment.name(base), os.O_RDONLY)
            if len(self._files) > _OPEN_FILES:
                os.close(self._files.popitem(last=False)[1])
        return fd
