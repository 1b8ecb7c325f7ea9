"""The file of an outbox: its tables, and how its deliveries go from state to state.

Of an ordering key the first delivery is ``ready`` and the others are ``queued`` behind it; one that is
``refused`` stays the first, so that nothing overtakes it. What a version has ``staged`` is sent when the
version is published; what is ``held`` goes, or is summed up, when the rate limit lets it.
Invariant: an ordering key has at most one delivery that is ready or refused, and it is the oldest.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

from headwater.stores.sqlite.connection import FileKind

_TABLES = """
CREATE TABLE IF NOT EXISTS outbox (
    one INTEGER PRIMARY KEY CHECK (one = 1), id TEXT NOT NULL, published INTEGER NOT NULL DEFAULT 1,
    dead TEXT, dead_since REAL, delivered INTEGER NOT NULL DEFAULT 0, error TEXT,
    window_start REAL NOT NULL DEFAULT 0, window_sent INTEGER NOT NULL DEFAULT 0
);
INSERT OR IGNORE INTO outbox (one, id) VALUES (1, lower(hex(randomblob(16))));
CREATE TABLE IF NOT EXISTS versions (
    version INTEGER PRIMARY KEY, batch INTEGER NOT NULL DEFAULT -1, epoch INTEGER NOT NULL DEFAULT 0,
    positions TEXT NOT NULL DEFAULT '', clock INTEGER
);
CREATE TABLE IF NOT EXISTS known_keys (
    version INTEGER NOT NULL, key TEXT NOT NULL, PRIMARY KEY (version, key)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS deliveries (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, ordering_key TEXT, recipient TEXT,
    body BLOB NOT NULL, state TEXT NOT NULL, version INTEGER NOT NULL, batch INTEGER NOT NULL,
    digest BLOB NOT NULL, due REAL NOT NULL DEFAULT 0, attempts INTEGER NOT NULL DEFAULT 0,
    failed_since REAL, error TEXT, refused_at REAL
);
CREATE INDEX IF NOT EXISTS ordering_keys ON deliveries (ordering_key, seq) WHERE ordering_key IS NOT NULL;
CREATE INDEX IF NOT EXISTS due ON deliveries (state, due, seq);
CREATE TABLE IF NOT EXISTS staged_batches (
    version INTEGER NOT NULL, batch INTEGER NOT NULL, positions TEXT NOT NULL, PRIMARY KEY (version, batch)
);
CREATE TABLE IF NOT EXISTS recent (seq INTEGER PRIMARY KEY AUTOINCREMENT, digest BLOB NOT NULL);
"""
OUTBOX = FileKind(
    "outbox", 0x6877_6F62, 2, _TABLES, "let the older Headwater deliver what waits, then delete the file"
)

ADD = """
INSERT INTO deliveries (id, ordering_key, recipient, body, state, version, batch, digest)
VALUES (:id, :ordering_key, :recipient, :body, CASE WHEN :state <> 'ready' THEN :state WHEN EXISTS (
    SELECT 1 FROM deliveries WHERE ordering_key = :ordering_key AND state <> 'staged'
) THEN 'queued' ELSE 'ready' END, :version, :batch, :digest)
"""


@dataclass(frozen=True)
class VersionProgress:
    """How far a version of a node has got."""

    batch: int = -1
    epoch: int = 0
    positions: str = ""


def version_progress(db: sqlite3.Connection, version: int) -> VersionProgress | None:
    """Return how far a version has got; None where it has not begun."""
    row = db.execute("SELECT batch, epoch, positions FROM versions WHERE version = ?", (version,)).fetchone()
    return None if row is None else VersionProgress(*row)


def published(db: sqlite3.Connection) -> int:
    """Return the version whose batches are sent."""
    return int(db.execute("SELECT published FROM outbox").fetchone()[0])


def pending(db: sqlite3.Connection) -> int:
    """Return how many deliveries are not done."""
    return int(db.execute("SELECT count(*) FROM deliveries WHERE state <> 'staged'").fetchone()[0])


def remove(db: sqlite3.Connection, seq: int, ordering_key: str | None) -> None:
    """Remove a delivery that is done, and let the next of its ordering key go."""
    db.execute("DELETE FROM deliveries WHERE seq = ?", (seq,))
    if ordering_key is not None:
        db.execute(
            "UPDATE deliveries SET state = 'ready', due = 0 WHERE seq = ("
            "SELECT min(seq) FROM deliveries WHERE ordering_key = ? AND state = 'queued')",
            (ordering_key,),
        )
