"""Where the parts of an embedded log lie, and how they are opened.

Layout of the directory::

    headwater.json                 the format's version
    state.db                       groups, committed offsets, producers' epochs (SQLite)
    groups/GROUP@TOPIC/            one locked file per living member
    topics/NAME/topic.json         the declaration
    topics/NAME/PARTITION/         segments (*.log, *.idx), head, producers, lock, care

Invariant: reading opens files for reading only; a log in a read-only place can be read.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from headwater.log import topic as topics
from headwater.log.embedded import head
from headwater.log.embedded.catalog import Catalog, Stored
from headwater.log.embedded.groups import State
from headwater.log.embedded.head import Head
from headwater.log.embedded.partition import Partition
from headwater.log.embedded.stream import RecordReader


class Storage:
    """Opens the topics, partitions and groups below one directory."""

    def __init__(self, root: Path, *, fsync: bool, segment_bytes: int):
        self.root = root
        self.catalog = Catalog(root)
        self._fsync, self._segment_bytes = fsync, segment_bytes
        self._state: State | None = None
        self._recovered: set[Path] = set()

    @property
    def state(self) -> State:
        """The groups and epochs, opened when first needed."""
        if self._state is None:
            self.catalog.prepare()
            self._state = State(self.root / "state.db")
        return self._state

    def close(self) -> None:
        """Release the state."""
        if self._state is not None:
            self._state.close()
            self._state = None

    def same(self, stored: Stored) -> Stored:
        """Return the topic as declared now, if it is still the one that was opened."""
        now = self.catalog.get(stored.topic.name)
        if now.id != stored.id:
            raise topics.unknown(stored.topic.name, ())
        return now

    def members(self, stored: Stored, group: str) -> Path:
        """Return the directory of a group's members."""
        return self.root / "groups" / f"{group}@{stored.id}"

    def partition(self, stored: Stored, number: int, on_roll: Callable[[], None] | None = None) -> Partition:
        """Open a partition for appending."""
        place = stored.partition(number)
        return Partition(place, fsync=self._fsync, segment_bytes=self._segment_bytes, on_roll=on_roll)

    def directory(self, stored: Stored, number: int) -> Path:
        """Return a partition's directory, its head brought up to date after a power loss."""
        path = stored.partition(number)
        if path not in self._recovered:
            with open(path / "head", "rb") as file:
                written = head.read(file.fileno())
            if (written is None or not written.since_boot) and os.access(path, os.W_OK):
                partition = self.partition(stored, number)
                partition.recover()
                partition.close()
            self._recovered.add(path)
        return path

    def head(self, stored: Stored, number: int) -> Head:
        """Return how far a partition may be read."""
        with open(self.directory(stored, number) / "head", "rb") as file:
            written = head.read(file.fileno())
            return written.head if written else Head(0, 0, 0, 0)

    def reader(self, stored: Stored, number: int, offset: int, meta: bool) -> RecordReader:
        """Open a partition for reading."""
        self.directory(stored, number)
        return RecordReader(self.root, lambda: self.same(stored), number, offset, meta)
