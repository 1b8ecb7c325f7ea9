"""Waiting for other processes' appends without polling.

Linux tells of changes to a file through inotify; where there is none, the wait is a short sleep
that grows to 20 ms. Invariant: what is published before ``wait`` begins to sleep, and after the
caller last looked, ends the wait, since watches are set when the object is made.
"""

from __future__ import annotations

import ctypes
import os
import select
import sys
import time
from collections.abc import Sequence
from pathlib import Path

_MODIFY, _CLOSE_WRITE, _CREATE, _DELETE = 0x2, 0x8, 0x100, 0x200
_NONBLOCK = 0x800 | 0x80000  # also close-on-exec


class Wakeup:
    """Wakes its owner when a watched file or directory changes."""

    def __init__(self, files: Sequence[Path], directories: Sequence[Path] = ()):
        self._fd = _inotify(files, directories)
        self._pause = 0.001
        self._poll = select.poll()
        if self._fd >= 0:
            self._poll.register(self._fd, select.POLLIN)

    def wait(self, timeout: float) -> None:
        """Sleep until something has changed, or ``timeout`` seconds have passed."""
        if self._fd < 0:
            time.sleep(min(self._pause, timeout))
            self._pause = min(self._pause * 2, 0.02)
            return
        if self._poll.poll(max(0.0, timeout) * 1000):
            self.clear()

    def clear(self) -> None:
        """Forget what has changed so far; the caller looks after this, not before."""
        self._pause = 0.001
        if self._fd >= 0:
            try:
                while os.read(self._fd, 1 << 16):
                    pass
            except BlockingIOError:
                pass

    def close(self) -> None:
        """Release the watch."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def _inotify(files: Sequence[Path], directories: Sequence[Path]) -> int:
    """Return a descriptor that becomes readable on changes, or -1 where that cannot be had."""
    if not sys.platform.startswith("linux"):
        return -1
    libc = ctypes.CDLL(None, use_errno=True)
    fd: int = libc.inotify_init1(_NONBLOCK)
    if fd < 0:
        return -1
    wanted = [(path, _MODIFY) for path in files]
    wanted += [(path, _CREATE | _DELETE | _CLOSE_WRITE) for path in directories]
    for path, mask in wanted:
        if libc.inotify_add_watch(fd, os.fsencode(path), mask) < 0:
            os.close(fd)
            return -1
    return fd
