"""Notes what Python processes sync; with its folder on ``PYTHONPATH``, driver and workers do.

A file's bytes are copied, and it is linked, so that its inode is no other's for as long as the notes are
kept; of a directory the names are noted. Invariant: what is noted was there before a sync that has
returned, so it is on the disk; ``power_loss`` takes all else for lost, or not, as chance has it.
"""

from __future__ import annotations

import fcntl
import json
import os
import stat
from collections.abc import Callable
from contextlib import suppress
from typing import Any

WATCHED = "POWER_LOSS_WATCHED"
"""Directories, separated as paths are; what is not below one of them is not noted."""
NOTES = "POWER_LOSS_NOTES"


def names(directory: str | int) -> dict[str, list[Any]]:
    """Return what a directory has: of each name the inode, what it is, and where a link leads to."""
    with os.scandir(directory) as entries:
        return {entry.name: _entry(entry, directory) for entry in entries}


def _entry(entry: os.DirEntry[str], directory: str | int) -> list[Any]:
    kind = "link" if entry.is_symlink() else "directory" if entry.is_dir() else "file"
    descriptor = directory if isinstance(directory, int) else None
    leads = os.readlink(entry.name if descriptor else entry.path, dir_fd=descriptor) if kind == "link" else ""
    return [entry.inode(), kind, leads]


def note(notes: str, name: str, data: bytes) -> None:
    """Write a note, whole."""
    draft = os.path.join(notes, f"{name}.draft-{os.getpid()}")
    with open(draft, "wb") as file:
        file.write(data)
    os.replace(draft, os.path.join(notes, name))


def noting(sync: Callable[[Any], None]) -> Callable[[Any], None]:
    """Return a sync that notes what it has made durable."""
    watched, notes = os.environ[WATCHED].split(os.pathsep), os.environ[NOTES]

    def synced(given: Any) -> None:
        fd = given if isinstance(given, int) else given.fileno()
        path, found = os.readlink(f"/proc/self/fd/{fd}"), os.fstat(fd)
        if not any(path == each or path.startswith(each + os.sep) for each in watched):
            sync(given)
            return
        with open(os.path.join(notes, "lock"), "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if stat.S_ISDIR(found.st_mode):
                kept, data = "names", json.dumps(names(fd)).encode()
            else:
                kept, data = "bytes", _bytes(f"/proc/self/fd/{fd}")
                with suppress(FileExistsError, FileNotFoundError):  # noted before; removed meanwhile
                    os.link(path, os.path.join(notes, f"{found.st_ino}.inode"))
            sync(given)
            note(notes, f"{found.st_ino}.{kept}", data)

    return synced


def _bytes(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


if NOTES in os.environ:
    os.fsync, os.fdatasync = noting(os.fsync), noting(os.fdatasync)
