"""Where the parts of an embedded log lie, and how they are opened.

Layout of the directory::

    headwater.json                 the format's version
    state.db                       groups, committed offsets, producers' epochs (SQLite)
    groups/GROUP@TOPIC/            one locked file per living member
    topics/NAME/topic.json         the declaration
    topics/NAME/growth.json        where partitions ended when others were added
    topics/NAME/PARTITION/         segments (*.log, *.idx), head, producers, lock, maintenance.lock

Invariant: reading opens files for reading only; a log in a read-only place can be read.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from headwater import topic_errors
from headwater.errors import DamagedLog
from headwater.log.embedded.catalog import EmbeddedCatalog, StoredTopic
from headwater.log.embedded.failures import translating_errors, unusable
from headwater.log.embedded.partition import growth, head, reader
from headwater.log.embedded.partition.head import Head
from headwater.log.embedded.partition.writer import Partition
from headwater.log.embedded.state_store import StateStore
from headwater.log.embedded.stream import RecordReader
from headwater.topic import Topic

_T = TypeVar("_T")
_TRIES = 10
_STATE = "state.db"


class Storage:
    """Opens the topics, partitions and groups below one directory."""

    def __init__(self, root: Path, *, fsync: bool, segment_bytes: int):
        self.root = root
        self.catalog = EmbeddedCatalog(root)
        self.fsync, self._segment_bytes = fsync, segment_bytes
        self._state: StateStore | None = None
        self._recovered: set[Path] = set()

    @property
    def state(self) -> StateStore:
        """The groups and epochs, opened when first needed."""
        if self._state is None:
            if os.access(self.root, os.W_OK) or not self.root.exists():
                self.catalog.prepare()
            self._state = StateStore(self.root / _STATE)
        return self._state

    @property
    def existing_state(self) -> StateStore | None:
        """The groups and epochs for who only reads; None where there are none, and none are made then."""
        return self.state if self._state is not None or (self.root / _STATE).exists() else None

    def close(self) -> None:
        """Release the state."""
        if self._state is not None:
            self._state.close()
            self._state = None

    def current(self, topic: Topic) -> StoredTopic:
        """Return a topic as declared now, if the one of its name still is that topic."""
        now = self.catalog.get(topic.name)
        if now.id != topic.id:
            raise topic_errors.replaced(now.topic, topic.id, *topic_errors.OPEN)
        return now

    def alter(self, name: str, changes: dict[str, Any]) -> StoredTopic:
        """Alter a topic; where it gets partitions, it is noted where those before end."""
        return self.catalog.alter(name, changes, self._growing)

    @contextmanager
    def _growing(self, stored: StoredTopic) -> Iterator[None]:
        """Keep all appenders out, and note where the partitions end, of what is durable."""
        with ExitStack() as held:
            ends = []
            for number in range(stored.topic.partitions):
                partition = held.enter_context(closing(self.partition(stored, number)))
                held.enter_context(partition.locked())
                partition.refresh()
                reached = partition.sync()
                partition.publish(reached)
                ends.append(reached.end)
            growth.note(stored.directory, ends)
            yield

    def with_retry(self, stored: StoredTopic, operation: Callable[[], _T]) -> _T:
        """Return what an operation on a topic's files returns; it is retried if one vanishes meanwhile."""
        for _ in range(_TRIES):
            try:
                return operation()
            except FileNotFoundError as error:  # by retention or compaction, or with the topic
                self.current(stored.topic)
                missing = error
            except OSError as error:
                raise unusable(self.root, error) from None
        raise DamagedLog(
            f'log is damaged: a file of topic "{stored.topic.name}" is missing',
            detail=str(missing),
            hint="restore it from a copy",
            resume=None,
        )

    def members(self, topic: str, group: str) -> Path:
        """Return the directory of a group's members, for a topic of that identity."""
        return self.root / "groups" / f"{group}@{topic}"

    def partition(
        self, stored: StoredTopic, number: int, on_roll: Callable[[], None] | None = None
    ) -> Partition:
        """Open a partition for appending."""
        directory = stored.partition(number)
        return Partition(directory, fsync=self.fsync, segment_bytes=self._segment_bytes, on_roll=on_roll)

    def directory(self, stored: StoredTopic, number: int) -> Path:
        """Return a partition's directory, its head brought up to date after a power loss."""
        path = stored.partition(number)
        if path not in self._recovered:
            if not _since_boot(path):
                self._recover(stored, number)
            self._recovered.add(path)
        return path

    def head(self, stored: StoredTopic, number: int) -> Head:
        """Return how far a partition may be read."""
        path = self.directory(stored, number)
        published = reader.published(path)
        if published is None:
            self._recover(stored, number)
            published = reader.published(path)
        return published or reader.worked_out(path)

    def reader(self, stored: StoredTopic, number: int, offset: int, meta: bool) -> RecordReader:
        """Open a partition for reading."""
        self.with_retry(stored, lambda: self.head(stored, number))
        with translating_errors(self.root):
            return RecordReader(self.root, lambda: self.current(stored.topic), number, offset, meta)

    def _recover(self, stored: StoredTopic, number: int) -> None:
        """Bring a head up to date, where it may be written and there is anything that it could tell.

        Recovery cuts the newest segment back to its first damage, so it is left alone where the
        head does not say how much was acknowledged and there are whole frames behind damage. Damage
        of what was acknowledged is told by those who meet it: what lies before it can be read.
        """
        path = stored.partition(number)
        if reader.is_new(path):  # reading makes nothing here
            return
        unknown = reader.published(path) is None and not head.blank(path / "head")
        if os.access(path, os.W_OK) and not (unknown and reader.broken(path)):
            with closing(self.partition(stored, number)) as partition, suppress(DamagedLog):
                partition.recover()


def _since_boot(path: Path) -> bool:
    try:
        with open(path / "head", "rb") as file:
            written = head.read(file.fileno())
    except FileNotFoundError:
        return False
    return written is not None and written.since_boot
