"""The SQLite file of one queue: how far it has read, and the messages that it has taken in.

What waits lies in the log and needs no row here: a cursor per partition says from where on. A message has a
row from when it is taken in until it is acknowledged or dead, so what an acknowledgement costs does not
depend on how many wait. Invariant: a record before a cursor has a row, or is done, or was counted as lost.
"""

from __future__ import annotations

import fcntl
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NamedTuple

from headwater.log.embedded.state_file import StateFile

TOPIC, RETRY, DEAD = 0, 1, 2
"""What a cursor is of: the queue's topic, what is tried again, what is dead (and was redriven or purged)."""
STATES = ("ready", "held", "delayed", "blocked", "dying")
"""What a message may be: see ``QueueStatus``; one that is dying has yet to be written as a dead letter."""

_TABLES = """
CREATE TABLE IF NOT EXISTS queue (
    one INTEGER PRIMARY KEY CHECK (one = 1), id TEXT NOT NULL, topic TEXT NOT NULL, settings TEXT NOT NULL,
    deaths INTEGER NOT NULL DEFAULT 0, lost INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE IF NOT EXISTS cursors (
    source INTEGER, partition INTEGER, topic TEXT NOT NULL, next INTEGER NOT NULL,
    PRIMARY KEY (source, partition)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS messages (
    seq INTEGER PRIMARY KEY,
    source INTEGER NOT NULL, partition INTEGER NOT NULL, offset INTEGER NOT NULL, received INTEGER NOT NULL,
    state TEXT NOT NULL, visible INTEGER, deliveries INTEGER NOT NULL, token INTEGER, consumer TEXT,
    priority INTEGER NOT NULL DEFAULT 0, due INTEGER, expires INTEGER, key BLOB, reason TEXT, death INTEGER
);
CREATE INDEX IF NOT EXISTS ready ON messages (priority DESC, seq) WHERE state = 'ready';
CREATE INDEX IF NOT EXISTS expiring ON messages (expires) WHERE state = 'ready' AND expires IS NOT NULL;
CREATE INDEX IF NOT EXISTS timed ON messages (visible) WHERE visible IS NOT NULL;
CREATE INDEX IF NOT EXISTS keyed ON messages (key, seq) WHERE key IS NOT NULL;
CREATE INDEX IF NOT EXISTS dying ON messages (seq) WHERE state = 'dying';
"""
_CHECKPOINT_PAGES = 4000
"""Pages of the write-ahead log after which whoever commits moves them into the file: a pause now and then."""


class QueueStore(StateFile):
    """The file of one queue; its writers take turns, in this process and in others."""

    def __init__(self, path: Path, root: Path, mutex: IO[bytes] | None, fsync: bool):
        super().__init__(path, root, _TABLES, f'messages of queue "{path.stem}"')
        self._mutex, self._fsync = mutex, fsync
        with self._errors():
            self._db.execute(f"PRAGMA wal_autocheckpoint={_CHECKPOINT_PAGES}")

    @contextmanager
    def transaction(self, durable: bool = False) -> Iterator[sqlite3.Connection]:
        """Change the state, all or nothing.

        Those who wait for others stand in the kernel's line: SQLite would sleep for a while and try again.
        """
        with self._lock, _held(self._mutex), super().transaction(durable and self._fsync) as db:
            yield db

    def cursors(self, source: int) -> dict[int, int]:
        """Return the next offset of each partition of a source that has been read from."""
        query = "SELECT partition, next FROM cursors WHERE source = ?"
        return {int(p): int(n) for p, n in self.rows(query, (source,))}  # type: ignore[call-overload]

    def cursor_of(self, source: int, topic: str) -> int:
        """Return the cursor of a topic with one partition; 0 if it is of an earlier topic of that name."""
        query = "SELECT next FROM cursors WHERE source = ? AND partition = 0 AND topic = ?"
        return max((int(row[0]) for row in self.rows(query, (source, topic))), default=0)  # type: ignore[call-overload]


def set_cursor(db: sqlite3.Connection, source: int, topic: str, partition: int, next: int) -> None:
    """Note how far a partition has been read, within a transaction."""
    db.execute(
        "INSERT INTO cursors VALUES (?, ?, ?, ?) "
        "ON CONFLICT DO UPDATE SET topic = excluded.topic, next = excluded.next",
        (source, partition, topic, next),
    )


@contextmanager
def _held(mutex: IO[bytes] | None) -> Iterator[None]:
    if mutex is None:  # a log that can only be read
        yield
        return
    fcntl.flock(mutex, fcntl.LOCK_EX)
    try:
        yield
    finally:
        fcntl.flock(mutex, fcntl.LOCK_UN)


class QueueName(NamedTuple):
    """What a queue is known by."""

    topic: str
    group: str


def queue_names(root: Path) -> list[QueueName]:
    """Return every queue that has a state in a log's directory, by topic and group."""
    stems = (path.stem.partition("@") for path in (root / "queues").glob("*@*.db"))
    return sorted(QueueName(topic, group) for topic, _, group in stems)


def state_path(root: Path, topic: str, group: str) -> Path:
    """Return where the state of a queue lies; its consumers have a folder of that name beside it."""
    return root / "queues" / f"{topic}@{group}.db"


def remove(path: Path) -> None:
    """Remove the files of a state."""
    for suffix in ("", "-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
