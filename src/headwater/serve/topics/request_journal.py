"""Requests that are to be stored once, or in several partitions: written down before they are appended.

A request is written down with its rows, the sequence numbers that they will have and the number of
partitions by which they are placed, durably, before the first of them is appended; with its position, when
all of them are. Whoever finds one without a position whose server is gone appends it again with the same
numbers and to the same partitions, also if the topic has more of them now, and the log leaves out what it
has: it knows no more than the last number of a producer in each partition.

Each server has a slot: a number that it holds by a lock on a file, which ends with its process. Its
producer is named by the slot, so that nobody else uses those sequence numbers.

Invariant: no row with a higher number is appended while one of the slot, that was written down, is neither
appended nor kept by its producer to be appended first. So what the log has of a producer is never more than
what was written down before, and to append it again changes nothing but what is missing.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
import threading
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from headwater import durable
from headwater.closing import Closing
from headwater.stores.sqlite.connection import FileKind, Writer

DAY = 86_400 * 1_000_000
FILE = "requests.db"
_TABLES = """
CREATE TABLE IF NOT EXISTS installation (name TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS requests (
    id INTEGER PRIMARY KEY AUTOINCREMENT, topic TEXT NOT NULL, name TEXT NOT NULL, key TEXT, digest BLOB,
    slot INTEGER NOT NULL, sequence INTEGER NOT NULL, rows INTEGER NOT NULL, partitions INTEGER NOT NULL,
    received INTEGER NOT NULL, payload BLOB, position TEXT
);
CREATE UNIQUE INDEX IF NOT EXISTS by_key ON requests (topic, key) WHERE key IS NOT NULL;
CREATE INDEX IF NOT EXISTS pending ON requests (slot, sequence) WHERE position IS NULL;
CREATE INDEX IF NOT EXISTS by_age ON requests (received);
"""
_KIND = FileKind("journal of requests", 0x6877726A, 2, _TABLES, "delete it when no server runs")
_COLUMNS = "id, topic, name, key, digest, slot, sequence, rows, partitions, received, payload, position"


@dataclass(frozen=True)
class WrittenRequest:
    """A request as it was written down."""

    id: int
    topic: str
    """The topic's identity."""
    name: str
    key: str | None
    digest: bytes | None
    """What the request was, to tell a second one that only has the same key."""
    slot: int
    sequence: int
    rows: int
    partitions: int
    """How many partitions the rows are placed in: as many as the topic had then."""
    received: int
    payload: bytes | None
    """The rows, as an Arrow stream; None when they are appended."""
    position: str | None
    """Where they were appended; None while that is not sure."""


class RequestJournal(Closing):
    """The journal of one log, shared by all servers on it."""

    def __init__(self, home: Path):
        durable.make(home, private=True)
        self._home = home
        self._durable = Writer(home / FILE, "fsync", _KIND)
        self._lazy = Writer(home / FILE, "os", _KIND)
        self._turn = threading.Lock()  # SQLite would let those who meet here sleep
        self.slot, self._lock = self._take_slot()
        self._installation = self._named()

    def producer(self, slot: int) -> str:
        """Return the id of the producer of a slot."""
        return f"headwater.serve-{self._installation}-{slot}"

    @contextmanager
    def beginning(self) -> Iterator[JournalEntry]:
        """Write requests down, all or none, durably when the block has ended."""
        with self._turn, self._durable.transaction() as db:
            yield JournalEntry(db, self.slot)

    def finish(self, positions: Sequence[tuple[int, str]], now: int, keep: int = DAY) -> None:
        """Note where requests, by id, were appended; those without a key are forgotten, and old ones too."""
        with self._turn, self._lazy.transaction() as db:
            db.executemany(
                "UPDATE requests SET position = ?, payload = NULL WHERE id = ?",
                [(position, id) for id, position in positions],
            )
            db.execute("DELETE FROM requests WHERE key IS NULL AND position IS NOT NULL")
            db.execute("DELETE FROM requests WHERE received < ? AND position IS NOT NULL", (now - keep,))

    def forget(self, ids: Sequence[int]) -> None:
        """Drop requests of which nothing was appended, and nothing will be."""
        with self._turn, self._durable.transaction() as db:
            db.executemany("DELETE FROM requests WHERE id = ?", [(id,) for id in ids])

    def pending(self) -> list[WrittenRequest]:
        """Return the requests that were not finished, of all slots, in the order of their numbers."""
        with self._lazy.transaction() as db:
            query = f"SELECT {_COLUMNS} FROM requests WHERE position IS NULL ORDER BY slot, sequence"  # noqa: S608
            return [WrittenRequest(*row) for row in db.execute(query).fetchall()]

    @contextmanager
    def holding(self, slot: int) -> Iterator[bool]:
        """Hold a slot if it is one's own or its server is gone; tell whether that is so."""
        if slot == self.slot:
            yield True
            return
        lock = self._lock_file(slot)
        try:
            yield _locked(lock)
        finally:
            os.close(lock)

    def close(self) -> None:
        """Give the slot back."""
        self._durable.close()
        self._lazy.close()
        os.close(self._lock)

    def _take_slot(self) -> tuple[int, int]:
        slot = 0
        while not _locked(lock := self._lock_file(slot)):
            os.close(lock)
            slot += 1
        return slot, lock

    def _lock_file(self, slot: int) -> int:
        return os.open(self._home / f"slot-{slot}.lock", os.O_RDWR | os.O_CREAT, 0o644)

    def _named(self) -> str:
        """Return the name of this journal: two of them on one broker have producers of their own."""
        with self._durable.transaction() as db:
            row = db.execute("SELECT name FROM installation").fetchone()
            if row is None:
                row = (uuid.uuid4().hex[:12],)
                db.execute("INSERT INTO installation VALUES (?)", row)
        return str(row[0])


@dataclass(frozen=True)
class JournalEntry:
    """A transaction in which requests are looked up and written down."""

    db: sqlite3.Connection
    slot: int

    def find(self, topic: str, key: str) -> WrittenRequest | None:
        """Return the request that was sent with a key."""
        query = f"SELECT {_COLUMNS} FROM requests WHERE topic = ? AND key = ?"  # noqa: S608  # a fixed text
        row = self.db.execute(query, (topic, key)).fetchone()
        return None if row is None else WrittenRequest(*row)

    def add(self, request: WrittenRequest) -> int:
        """Write a request down, and return its id."""
        cursor = self.db.execute(
            "INSERT INTO requests "
            "(topic, name, key, digest, slot, sequence, rows, partitions, received, payload) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                *(request.topic, request.name, request.key, request.digest, self.slot),
                *(request.sequence, request.rows, request.partitions, request.received, request.payload),
            ),
        )
        assert cursor.lastrowid is not None
        return cursor.lastrowid


def _locked(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
