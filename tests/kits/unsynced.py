"""A directory whose every write is noted, and what a power loss at any moment would leave of it.

In this process, and to the sector: a file has all the versions since its last sync, and each of its
sectors may be that of any of them, or zeros where nothing was synced; names that were not synced may be
there or not. (``power_loss`` does it for whole processes.)
"""

from __future__ import annotations

import fcntl
import os
import stat
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest

from headwater.log.embedded.partition import head

SECTOR = 512


class Moment(NamedTuple):
    """What was on the disk and what was on its way, and what had been acknowledged."""

    versions: dict[int, tuple[bytes, ...]]
    """Of each inode what was synced, and every content since."""
    synced: dict[str, int]
    names: dict[str, int]
    acknowledged: frozenset[Any]

    @property
    def unsynced(self) -> int:
        """How many appends to one file may be lost."""
        return max(len({len(each) for each in versions}) - 1 for versions in self.versions.values())


class Disk:
    """Notes the writes and syncs of files that lie in one directory."""

    def __init__(self, directory: Path, patch: pytest.MonkeyPatch):
        self.directory = directory
        self.acknowledged: set[Any] = set()
        self.moments: list[Moment] = []
        self.before_sync: Callable[[], None] | None = None
        self._held: dict[int, int] = {}
        self._versions: dict[int, tuple[bytes, ...]] = {}
        self._look()
        self._versions = {inode: versions[-1:] for inode, versions in self._versions.items()}
        self._synced = self._names()
        for name in ("pwritev", "pwrite", "ftruncate", "replace", "unlink"):
            patch.setattr(os, name, self._noting(getattr(os, name)))
        for name in ("fdatasync", "fsync"):
            patch.setattr(os, name, self._syncing(getattr(os, name)))

    def close(self) -> None:
        for descriptor in self._held.values():
            os.close(descriptor)

    def interrupt(self) -> None:
        """Do what was to be done before a sync, unless the lock is held and so it has to wait."""
        with open(self.directory / "lock") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return
        between, self.before_sync = self.before_sync, None
        if between is not None:
            between()

    def note(self) -> None:
        """Note this moment."""
        self._look()
        acknowledged = frozenset(self.acknowledged)
        self.moments.append(Moment(dict(self._versions), self._synced, self._names(), acknowledged))

    def _noting(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def noted(*arguments: Any, **more: Any) -> Any:
            done = real(*arguments, **more)
            self.note()
            return done

        return noted

    def _syncing(self, real: Callable[[int], None]) -> Callable[[int], None]:
        def synced(descriptor: int) -> None:
            self.interrupt()
            real(descriptor)
            self._look()
            found = os.fstat(descriptor)
            if stat.S_ISDIR(found.st_mode):
                self._synced = self._names()
            elif found.st_ino in self._versions:
                self._versions[found.st_ino] = self._versions[found.st_ino][-1:]
            self.note()

        return synced

    def _names(self) -> dict[str, int]:
        return {entry.name: entry.inode() for entry in os.scandir(self.directory)}

    def _look(self) -> None:
        """Note what the files hold now; each is held open, so that its inode is no other's."""
        for name, inode in self._names().items():
            if inode not in self._held:
                self._held[inode] = os.open(self.directory / name, os.O_RDONLY)
        for inode, descriptor in self._held.items():
            before = self._versions.get(inode, (b"",))
            now = os.pread(descriptor, os.fstat(descriptor).st_size, 0)
            self._versions[inode] = before if now == before[-1] else (*before, now)


def restarted(directory: Path) -> None:
    """Let the head of a partition be that of a run of the machine that is over."""
    path = directory / "head"
    with open(path, "r+b" if path.exists() else "w+b") as file, pytest.MonkeyPatch.context() as patch:
        written = head.read(file.fileno())
        if written is not None:
            patch.setattr(head, "BOOT", bytes(16))
            head.write(file.fileno(), written.head, written.synced)


def leave(moment: Moment, directory: Path, chance: Random) -> None:
    """Make of an empty directory what a power loss at a moment leaves."""
    for name in sorted(moment.names.keys() | moment.synced.keys()):
        inode = chance.choice([moment.names.get(name), moment.synced.get(name)])
        if inode is not None:
            (directory / name).write_bytes(left(moment.versions.get(inode, (b"",)), chance))


def left(versions: tuple[bytes, ...], chance: Random) -> bytes:
    """Return what may be left of a file, of which the first version was synced."""
    synced, size = versions[0], len(chance.choice([*versions, max(versions, key=len)]))
    whole = chance.random()  # how likely a sector is to be there
    made = bytearray()
    for at in range(0, size, SECTOR):
        source = versions[-1] if chance.random() < whole else chance.choice([synced, *versions])
        made += source[at : at + SECTOR].ljust(SECTOR, b"\0")
    return bytes(made[:size])
