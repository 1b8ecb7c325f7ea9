"""Files of a store that this machine has fetched: on its own disk, up to a number of bytes.

Names in a store are never reused, so what was fetched once is right for ever, and nobody is asked whether
it is. All processes of a machine share the folder. Files that were used longest ago make room; one that is
mapped stays with those who have mapped it.

Invariant: a file is in the folder whole and synced, or not at all.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import BinaryIO, TypeVar

from headwater import durable

LIMIT_BYTES = 8 << 30
_SCANS = 16
"""How often the folder is measured while as much is fetched as it may hold."""

T = TypeVar("T")


@dataclass
class FetchedFiles:
    """A folder of copies."""

    folder: Path
    limit: int = LIMIT_BYTES
    _unmeasured: int = field(default=0, init=False)

    def use(self, name: str, fetch: Callable[[BinaryIO], None], use: Callable[[Path], T]) -> T:
        """Return what a function makes of a file, which another writes if it is not there."""
        path = self.folder / name
        while True:
            try:
                os.utime(path)
                return use(path)
            except FileNotFoundError:  # or has been removed between the two
                self.add(name, fetch)

    def add(self, name: str, write: Callable[[BinaryIO], None]) -> int:
        """Add a file as a function writes it, and return its bytes."""
        durable.make(self.folder, private=True)
        with durable.drafting(self.folder / name) as draft, open(draft, "xb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
            size = file.tell()
        self._make_room(size)
        return size

    def discard(self, name: str) -> None:
        """Remove a file that nobody will ask for any more, if it is here."""
        (self.folder / name).unlink(missing_ok=True)

    def _make_room(self, added: int) -> None:
        self._unmeasured += added
        if self._unmeasured * _SCANS < self.limit:
            return
        self._unmeasured = 0
        durable.sweep(self.folder)
        found = sorted(self._files(), key=lambda each: each[1], reverse=True)
        held = 0
        for place, (path, _, size) in enumerate(found):
            held += size
            if held > self.limit and place:  # the newest is about to be used
                path.unlink(missing_ok=True)

    def _files(self) -> list[tuple[Path, int, int]]:
        """Return each file with when it was used last, and its bytes."""
        found = []
        for path in self.folder.iterdir():
            with suppress(FileNotFoundError):  # another process makes room, too
                status = path.stat()
                if not durable.is_draft(path):
                    found.append((path, status.st_mtime_ns, status.st_size))
        return found


@cache
def fetched_files(folder: Path, limit: int) -> FetchedFiles:
    """Return the one of a process, which knows how much it has added."""
    return FetchedFiles(folder, limit)


def default_folder() -> Path:
    """Return where this machine keeps what it has fetched; ``HEADWATER_FETCHED`` says it instead."""
    named = os.environ.get("HEADWATER_FETCHED")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(named) if named else cache / "headwater" / "fetched"


def default_limit() -> int:
    """Return how many bytes it may keep; ``HEADWATER_FETCHED_BYTES`` says it instead."""
    return int(os.environ.get("HEADWATER_FETCHED_BYTES", LIMIT_BYTES))
