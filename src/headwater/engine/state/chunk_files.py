"""Chunks of states as files of one folder, which all workers see.

A chunk is a stretch of a file that is never changed, under a random name. The small chunks of a step are in
one file; those of all buckets of a node, where the driver steps them itself: then they cost one sync, however
many buckets and containers there are.

Invariant: a chunk's bytes are durable before a manifest can name it, and its file's name is when the
manifest is.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Protocol

from headwater.engine.files.home_files import HomeFiles
from headwater.engine.home.notes import damaged
from headwater.operators.memory.run import Stretch

PACKED_BYTES = 1 << 20
"""A chunk of this size has a file of its own: a packed one stays until no bucket names its file any more."""


class Chunks(Protocol):
    """Where chunks are kept."""

    def get(self, chunk: Stretch) -> bytes:
        """Return a chunk's bytes."""

    def put(self, data: bytes) -> Stretch:
        """Store a chunk."""


class Files:
    """A file for each chunk."""

    def __init__(self, files: HomeFiles):
        self._files = files

    def get(self, chunk: Stretch) -> bytes:
        """Return a chunk's bytes."""
        return self._files.read(chunk)

    def put(self, data: bytes) -> Stretch:
        """Store a chunk."""
        name = new_name()
        self._files.create(name, data)
        return Stretch(name, len(data))


class Pack(Files):
    """One file for the small chunks of several buckets and their containers; written at the end."""

    def __init__(self, files: HomeFiles):
        super().__init__(files)
        self._name, self._data = new_name(), bytearray()

    def put(self, data: bytes) -> Stretch:
        """Keep a small chunk to be written with the others; store a large one."""
        if len(data) >= PACKED_BYTES:
            return super().put(data)
        at = len(self._data)
        self._data += data
        return Stretch(self._name, len(data), at)

    def write(self) -> None:
        """Store what was put, if anything was."""
        if self._data:
            self._files.create(self._name, bytes(self._data))


def check(location: str, sizes: Mapping[str, int], chunks: list[Stretch]) -> None:
    """Refuse chunks that are not whole among the files that are there."""
    for chunk in chunks:
        size = sizes.get(chunk.file)
        if size is None or size < chunk.at + chunk.size:
            reason = "it is missing" if size is None else f"it has {size} bytes only"
            raise damaged(f"{location}/{chunk.file}", reason)


def new_name() -> str:
    """Return a name that no file has."""
    return os.urandom(8).hex()
