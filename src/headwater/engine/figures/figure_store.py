"""The file of a pipeline's home in which its runner writes down its figures, about once a second.

Any process reads it, while it is written and after the runner was killed: SQLite in its write-ahead log. The
figures are no truth, only told: nothing is synced, and a file that a power loss has damaged is begun anew.

Invariant: what is noted at one time is there whole or not at all.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from headwater import durable
from headwater.sqlite_wal import write_ahead

STORE = "figures.db"
WAIT_SECONDS = 1.0
_VERSION = 1
_SCHEMA = """
CREATE TABLE IF NOT EXISTS runner (
  one INTEGER PRIMARY KEY CHECK (one = 1), run TEXT NOT NULL, host TEXT NOT NULL, pid INTEGER NOT NULL,
  started REAL NOT NULL, noted REAL NOT NULL, ended REAL, step TEXT);
CREATE TABLE IF NOT EXISTS latest (
  part TEXT NOT NULL, name TEXT NOT NULL, facts TEXT NOT NULL, PRIMARY KEY (part, name)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS points (
  width INTEGER NOT NULL, time INTEGER NOT NULL, node TEXT NOT NULL, rate REAL, batch_seconds REAL,
  lag INTEGER, clock_behind REAL, late INTEGER, dead INTEGER, state_bytes INTEGER,
  PRIMARY KEY (width, time, node)) WITHOUT ROWID;
"""


def open_for_writing(home: Path) -> sqlite3.Connection:
    """Open the figures of a pipeline for its runner; a file that cannot be used is begun anew."""
    durable.make(home, private=True)
    try:
        return _prepared(home / STORE)
    except sqlite3.DatabaseError as error:
        if isinstance(error, sqlite3.OperationalError):  # locked, or no room: the file itself is whole
            raise
    for suffix in ("", "-wal", "-shm"):
        (home / f"{STORE}{suffix}").unlink(missing_ok=True)
    return _prepared(home / STORE)


def _prepared(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, WAIT_SECONDS, isolation_level=None, check_same_thread=False)
    try:
        write_ahead(connection, WAIT_SECONDS)
        connection.execute("PRAGMA synchronous=OFF")
        if connection.execute("PRAGMA user_version").fetchone()[0] not in (0, _VERSION):
            raise sqlite3.DatabaseError("the figures are those of another release")
        connection.executescript(_SCHEMA)
        connection.execute(f"PRAGMA user_version={_VERSION}")
    except BaseException:
        connection.close()
        raise
    return connection


@contextmanager
def reading(home: Path) -> Iterator[sqlite3.Connection | None]:
    """Open the figures of a pipeline for one who only looks; None where there are none that can be read.

    Nothing is written but what SQLite needs beside the file to read it while somebody writes.
    """
    path = home / STORE
    if not path.exists():
        yield None
        return
    connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=rw", WAIT_SECONDS, uri=True)
    try:
        connection.execute("PRAGMA query_only=ON")
        known = connection.execute("PRAGMA user_version").fetchone()[0] == _VERSION
    except sqlite3.DatabaseError:  # damaged: its runner begins it anew
        known = False
    try:
        yield connection if known else None
    finally:
        connection.close()


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Do what is in the block whole or not at all."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")
