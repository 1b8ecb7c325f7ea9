"""The head of a partition: how far it is durable and may be read.

A small file that the appender overwrites after its data is on disk, and that readers watch. Only the
first one of a partition is synced, so that there is one: a later one only ever names data that is, and
after a power loss an older one may be there. Invariant: records past the head are not read, so a reader
never sees what a power loss could take back (with ``durability="fsync"``).
"""

from __future__ import annotations

import os
import struct
import time
import zlib
from pathlib import Path
from typing import NamedTuple

_STRUCT = struct.Struct("<qqqq?16sI")


class Head(NamedTuple):
    """The published end of a partition."""

    segment: int
    """Base offset of the active segment."""
    size: int
    """Published bytes of the active segment."""
    end: int
    """Offset the next record will get."""
    received: int
    """When the newest record was received."""


def boot() -> bytes:
    """Return an identity of this run of the machine; after a power loss it is another one."""
    try:
        return bytes.fromhex(Path("/proc/sys/kernel/random/boot_id").read_text().strip().replace("-", ""))
    except (OSError, ValueError):
        # Elsewhere than on Linux: the minute the machine started. A wrong answer only costs a scan.
        return struct.pack("<qq", 0, round((time.time() - time.monotonic()) / 60))


BOOT = boot()
"""That of this process."""


class WrittenHead(NamedTuple):
    """A head with the circumstances in which it was written."""

    head: Head
    synced: bool
    since_boot: bool

    @property
    def sure(self) -> bool:
        """Whether all that the head names must still be there."""
        return self.synced or self.since_boot


def read(fd: int) -> WrittenHead | None:
    """Return the head, or None if there is none yet or it is torn."""
    for _ in range(3):  # a checksum that does not match may be a write under way
        data = os.pread(fd, _STRUCT.size, 0)
        if len(data) == _STRUCT.size:
            *fields, synced, booted, checksum = _STRUCT.unpack(data)
            if zlib.crc32(data[:-4]) == checksum:
                return WrittenHead(Head(*fields), synced, booted == BOOT)
    return None


def blank(path: Path) -> bool:
    """Tell whether there has been no head yet, or none that reached the disk: so nothing was acknowledged."""
    return not path.exists() or not path.read_bytes().strip(b"\0")


def write(fd: int, head: Head, synced: bool) -> None:
    """Publish a head."""
    data = _STRUCT.pack(*head, synced, BOOT, 0)[:-4]
    os.pwrite(fd, data + struct.pack("<I", zlib.crc32(data)), 0)
