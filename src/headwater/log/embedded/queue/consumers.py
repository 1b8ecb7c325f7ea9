"""The consumers of a queue: each holds a lock on a file of its own, so that its death is seen at once.

Invariant: a consumer whose file is locked may have messages; one whose file is not has died or gone, and
its messages are given back by whoever looks next.
"""

from __future__ import annotations

import fcntl
import os
import uuid
import weakref
from contextlib import suppress
from pathlib import Path
from typing import IO

from headwater import durable
from headwater.log.embedded.groups import holds_lock

_MUTEX, _CHANGED = "mutex", "changed"


class ConsumerLock:
    """One living consumer of a queue, and the lock for which those who write take turns."""

    def __init__(self, directory: Path):
        self.directory = directory
        durable.make(directory)
        self.id = uuid.uuid4().hex
        self.mutex = open(directory / _MUTEX, "ab")
        self._file = _locked(directory / self.id)
        _locks.add(self)

    def lives(self, consumer: str) -> bool:
        """Tell whether a consumer is there."""
        return consumer == self.id or holds_lock(self.directory / consumer)

    def living(self) -> int:
        """Return how many consumers are there."""
        return sum(map(self.lives, names(self.directory)))

    def sweep(self) -> None:
        """Remove the files of those who have died."""
        for name in names(self.directory):
            if name != self.id:
                _remove_if_dead(self.directory / name)

    def notify(self) -> None:
        """Wake the others who wait: a message can be had."""
        with suppress(FileNotFoundError), open(self.directory / _CHANGED, "w"):
            pass

    def close(self) -> None:
        """Leave; whoever waits looks at what was left behind."""
        _locks.discard(self)
        (self.directory / self.id).unlink(missing_ok=True)
        self.release()

    def release(self) -> None:
        """Close the files."""
        self._file.close()
        self.mutex.close()


def _locked(path: Path) -> IO[bytes]:
    """Make a consumer's file and lock it; others may have removed it in between, as one of the dead."""
    while True:
        file = open(path, "wb")
        fcntl.flock(file, fcntl.LOCK_EX)
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(file.fileno()), os.stat(path)):
                return file
        file.close()


def _remove_if_dead(path: Path) -> None:
    """Remove a file that nobody holds, while holding it: who locks it next sees that it is gone."""
    with suppress(FileNotFoundError, BlockingIOError), open(path, "rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        path.unlink()


_locks: weakref.WeakSet[ConsumerLock] = weakref.WeakSet()


def _release_in_child() -> None:
    """A forked child must not hold its parent's locks: they would outlive the parent."""
    for lock in _locks:
        lock.release()


os.register_at_fork(after_in_child=_release_in_child)


def names(directory: Path) -> list[str]:
    """Return the names of the consumers that have a file."""
    try:
        found = os.listdir(directory)
    except FileNotFoundError:
        return []
    return [name for name in found if name not in (_MUTEX, _CHANGED)]


def count_living(directory: Path) -> int:
    """Return how many consumers a queue has, for who is none."""
    return sum(holds_lock(directory / name) for name in names(directory))
