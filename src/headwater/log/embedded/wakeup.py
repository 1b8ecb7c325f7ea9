"""Waiting for other processes' appends without polling.

Linux tells of changes to a file through inotify; where there is none, the wait is a short sleep
that grows to 20 ms. Invariant: what is published before ``wait`` begins to sleep, and after the
caller last looked, ends the wait, since watches are set when the object is made.
"""

from __future__ import annotations

import ctypes
import os
import select
import struct
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

_MODIFY = 0x2
_CHANGES = 0x8 | 0x100 | 0x200  # a file in it was closed after writing, made, or deleted
_EVENT = struct.Struct("iIII")  # watch, what, cookie, length of the name that follows
_NONBLOCK = 0x800 | 0x80000  # also close-on-exec


class Wakeup:
    """Wakes its owner when a watched file is written, or something in a watched directory changes."""

    def __init__(self, files: Sequence[Path], directories: Sequence[Path] = ()):
        self._fd, self._directories = _inotify(files, directories)
        self._pause = 0.001
        self._poll = select.poll()
        if self._fd >= 0:
            self._poll.register(self._fd, select.POLLIN)

    def wait(self, timeout: float) -> bool:
        """Sleep until something has changed, or ``timeout`` seconds have passed.

        Returns whether a directory has changed; always, where that cannot be known.
        """
        if self._fd < 0:
            time.sleep(min(self._pause, timeout))
            self._pause = min(self._pause * 2, 0.02)
            return True
        return bool(self._poll.poll(max(0.0, timeout) * 1000)) and self.clear()

    def clear(self) -> bool:
        """Forget what has changed so far, and tell whether a directory was among it."""
        self._pause = 0.001
        changed = False
        while self._fd >= 0:
            try:
                data = os.read(self._fd, 1 << 16)
            except BlockingIOError:
                break
            changed = changed or any(watch in self._directories for watch in _watches(data))
        return changed

    def close(self) -> None:
        """Release the watch."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def _watches(events: bytes) -> Iterator[int]:
    """Yield the number of the watch of each event."""
    at = 0
    while at < len(events):
        watch, _, _, length = _EVENT.unpack_from(events, at)
        yield watch
        at += _EVENT.size + length


def _inotify(files: Sequence[Path], directories: Sequence[Path]) -> tuple[int, set[int]]:
    """Return a descriptor that becomes readable on changes, or -1 where that cannot be had.

    With it come the numbers of the directories' watches.
    """
    if not sys.platform.startswith("linux"):
        return -1, set()
    libc = ctypes.CDLL(None, use_errno=True)
    fd: int = libc.inotify_init1(_NONBLOCK)
    if fd < 0:
        return -1, set()
    numbers = [libc.inotify_add_watch(fd, os.fsencode(path), _MODIFY) for path in files]
    within = {libc.inotify_add_watch(fd, os.fsencode(path), _CHANGES) for path in directories}
    if min([0, *numbers, *within]) < 0:
        os.close(fd)
        return -1, set()
    return fd, within
