"""Snapshots of states, so that a long history need not be folded anew; never the truth.

Each says up to which event it goes and when that was recorded: one that does not meet its event in the log is
not used, whatever the reason, and neither is one whose checksum is wrong. One of another fold, by the
fingerprint of its code, is removed.

Invariant: a state that comes from a snapshot and the events after it is the one that all events give.
"""

from __future__ import annotations

import hashlib
import logging
import pickle
import sqlite3
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headwater.sourcing.timer import OpenTimer, TimerKey
from headwater.sqlite_wal import discard_damaged, write_ahead

FILE = "snapshots.db"
_BUSY_SECONDS = 10.0
_CHECKSUM_BYTES = 16
_TABLE = """CREATE TABLE IF NOT EXISTS snapshots (
    key TEXT PRIMARY KEY, fingerprint TEXT, version INTEGER, content BLOB
) WITHOUT ROWID"""
_log = logging.getLogger("headwater")


@dataclass(frozen=True)
class FoldedState:
    """What the events of an aggregate have led to."""

    state: Any
    version: int = 0
    """The offset behind the last of its events; 0 before the first."""
    count: int = 0
    """How many events it has had."""
    recorded_at: int = 0
    """When the last one was recorded."""
    timers: Mapping[TimerKey, OpenTimer] = field(default_factory=dict)


class Snapshots:
    """The newest snapshot of each aggregate, in a file beside its events; with no file, none."""

    def __init__(self, path: Path | None, fingerprint: str):
        self._fingerprint = fingerprint
        self._lock = threading.Lock()
        self._db = None if path is None else _opened(path)
        with self._lock, suppress(sqlite3.Error):
            if self._db is not None:
                self._db.execute("DELETE FROM snapshots WHERE fingerprint <> ?", (fingerprint,))

    def newest(self, key: str) -> FoldedState | None:
        """Return the snapshot of an aggregate, if there is one that can be read."""
        query = "SELECT content FROM snapshots WHERE key = ? AND fingerprint = ?"
        try:
            with self._lock:
                row = self._db.execute(query, (key, self._fingerprint)).fetchone() if self._db else None
            return None if row is None else self._opened(key, row[0])
        except Exception as error:  # a snapshot is a help: of whatever it fails, the events are there
            _log.warning('snapshot of "%s" was not used: %s', key, error)
            return None

    def save(self, key: str, folded: FoldedState) -> None:
        """Keep a state as the newest one of its aggregate; if that fails, the one before stays."""
        statement = """INSERT INTO snapshots VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET
            fingerprint = excluded.fingerprint, version = excluded.version, content = excluded.content
            WHERE excluded.version > version OR excluded.fingerprint <> fingerprint"""
        try:
            pickled = pickle.dumps(folded, protocol=5)
            content = self._checksum(key, pickled) + pickled
            with self._lock:
                if self._db is not None:
                    self._db.execute(statement, (key, self._fingerprint, folded.version, content))
        except Exception as error:  # of a state that cannot be pickled, or a full disk
            _log.warning('state of "%s" was not kept as a snapshot: %s', key, error)

    def forget(self, key: str) -> None:
        """Remove a snapshot that does not fit its events."""
        with self._lock, suppress(sqlite3.Error):
            if self._db is not None:
                self._db.execute("DELETE FROM snapshots WHERE key = ?", (key,))

    def _opened(self, key: str, content: bytes) -> FoldedState:
        checksum, pickled = content[:_CHECKSUM_BYTES], content[_CHECKSUM_BYTES:]
        if checksum != self._checksum(key, pickled):
            raise ValueError("it is damaged")
        folded: FoldedState = pickle.loads(pickled)
        return folded

    def _checksum(self, key: str, pickled: bytes) -> bytes:
        about = f"{len(key)} {key} {self._fingerprint} ".encode()
        return hashlib.blake2b(about + pickled, digest_size=_CHECKSUM_BYTES).digest()

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            if self._db is not None:
                self._db.close()
                self._db = None


def _opened(path: Path) -> sqlite3.Connection | None:
    """Open the file; one that is damaged is begun anew, and without one all goes on."""
    for _ in range(2):
        try:
            return _connected(path)
        except sqlite3.Error as error:
            _log.warning('snapshots "%s" cannot be used: %s', path, error)
            if not discard_damaged(path, error):
                break
    return None


def _connected(path: Path) -> sqlite3.Connection:
    db = sqlite3.connect(path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    try:
        write_ahead(db, _BUSY_SECONDS)
        db.execute("PRAGMA synchronous=NORMAL")
        db.execute(_TABLE)
        db.execute("SELECT count(*) FROM snapshots WHERE version < 0")
    except BaseException:
        db.close()
        raise
    return db
