"""The files of a state in a directory: written and synced where they stay, mapped from there.

Invariant: nothing is copied, and a file's bytes are synced before its name is.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from headwater import durable
from headwater.operators.memory.run import Stretch


@dataclass(frozen=True)
class LocalFiles:
    """A directory, which all processes that use it see."""

    folder: Path

    @property
    def location(self) -> str:
        """The directory's path."""
        return str(self.folder.absolute())

    def make(self) -> None:
        """Make the directory, and remove drafts of processes that have died."""
        durable.make(self.folder)
        durable.sweep(self.folder)

    def sizes(self) -> dict[str, int]:
        """Return the files of the directory, without drafts."""
        with os.scandir(self.folder) as entries:
            return {entry.name: entry.stat().st_size for entry in entries if not entry.name.startswith(".")}

    def create(self, name: str, data: bytes) -> None:
        """Write and sync a file."""
        durable.create(self.folder / name, data)

    def create_mapped(self, name: str, write: Callable[[pa.NativeFile], None]) -> int:
        """Let a function write a file, and sync it."""
        with open(self.folder / name, "xb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
            return file.tell()

    def read(self, stretch: Stretch) -> bytes:
        """Read a stretch of a file."""
        with open(self.folder / stretch.file, "rb") as file:
            file.seek(stretch.at)
            return file.read(stretch.size)

    def map(self, name: str) -> pa.NativeFile:
        """Map a file."""
        return pa.memory_map(str(self.folder / name))

    def commit(self, name: str, data: bytes) -> bool:
        """Write a list under a name that none has; the names of all files before it are synced with it."""
        return durable.write_new(self.folder / name, data)

    def listed(self, name: str) -> bytes:
        """Read a list."""
        return (self.folder / name).read_bytes()

    def remove(self, names: Iterable[str]) -> None:
        """Remove files."""
        for name in names:
            (self.folder / name).unlink(missing_ok=True)
