"""What a place for the files of a state must be able to do: a contract in a few clauses.

A file is written once, under a name that none had before, and is whole or not there. A list, which says
what counts, is committed under a number: of two who try the same one, one is told that it came too late. That
is the one condition that all is built on, because every store has it: a disk by a link, S3 by a put
with ``If-None-Match``.

Invariant: what is read is to the byte what was created, in any process, or an error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

import pyarrow as pa

from headwater.operators.memory.run import Stretch


class HomeFiles(Protocol):
    """A folder of files, all of them directly in it."""

    @property
    def location(self) -> str:
        """By what another process opens the same folder."""

    def make(self) -> None:
        """Make the folder, if that is needed, and remove what others left half written."""

    def sizes(self) -> dict[str, int]:
        """Return the files that are there, each with its bytes."""

    def create(self, name: str, data: bytes) -> None:
        """Store a file; its bytes are durable then, and its name is when the next list is committed."""

    def create_mapped(self, name: str, write: Callable[[pa.NativeFile], None]) -> int:
        """Store a file that is to be mapped, as a function writes it, and return its bytes."""

    def read(self, stretch: Stretch) -> bytes:
        """Return a stretch of a file."""

    def map(self, name: str) -> pa.NativeFile:
        """Return a file as memory that is looked into, and not read."""

    def commit(self, name: str, data: bytes) -> bool:
        """Store a list durably, if none has its name; tell whether this one has it now."""

    def listed(self, name: str) -> bytes:
        """Return a list."""

    def remove(self, names: Iterable[str]) -> None:
        """Remove files and lists; those that are gone already are no matter."""
