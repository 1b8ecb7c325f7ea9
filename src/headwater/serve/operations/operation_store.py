"""Operations that were begun, and what came of them: a bounded number, there after the server was restarted.

Invariant: an operation that runs has a server that is alive; one whose server is gone has failed.
"""

from __future__ import annotations

import json
import os
import socket
import sqlite3
import threading
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

from headwater import durable
from headwater.closing import Closing
from headwater.liveness import may_be_alive
from headwater.sqlite_wal import write_ahead
from headwater.values.json_ready import JsonReady, calendar_time

STORE = "operations.db"
MOST = 200
WAIT_SECONDS = 5.0
State = Literal["running", "done", "failed"]
_SCHEMA = """CREATE TABLE IF NOT EXISTS operations (
  number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, host TEXT NOT NULL, pid INTEGER NOT NULL,
  facts TEXT NOT NULL)"""


@dataclass(frozen=True)
class OperationRecord(JsonReady):
    """Something that was asked for and takes a while."""

    id: str
    kind: str
    target: str
    """What it is done to: ``PIPELINE/NODE``, or ``TOPIC/GROUP``."""
    state: State = "running"
    progress: float | None = None
    """The part that is done, from 0 to 1; None where that is not known."""
    message: str = ""
    result: Any = None
    error: dict[str, str | None] | None = None
    """``message``, ``detail`` and ``hint`` of what went wrong."""
    started: float = 0.0
    """In seconds since 1970."""
    ended: float | None = None

    def facts(self) -> dict[str, Any]:
        """Return its fields, with times as such."""
        ended = None if self.ended is None else calendar_time(int(self.ended * 1e6))
        return {**super().facts(), "started": calendar_time(int(self.started * 1e6)), "ended": ended}


class OperationStore(Closing):
    """The operations of a server, in a file or, where there is none, in memory."""

    def __init__(self, home: Path | None):
        if home is not None:
            durable.make(home, private=True)
        path = ":memory:" if home is None else str(home / STORE)
        self._lock = threading.Lock()
        self._db = sqlite3.connect(path, WAIT_SECONDS, isolation_level=None, check_same_thread=False)
        if home is not None:
            write_ahead(self._db, WAIT_SECONDS)
        self._db.execute(_SCHEMA)

    def add(self, record: OperationRecord) -> None:
        """Note one that begins, in this process; the oldest goes if there are too many."""
        query = "INSERT INTO operations (id, host, pid, facts) VALUES (?, ?, ?, ?)"
        last = "DELETE FROM operations WHERE number <= (SELECT max(number) FROM operations) - ?"
        with self._lock:
            self._db.execute(query, (record.id, socket.gethostname(), os.getpid(), _stored(record)))
            self._db.execute(last, (MOST,))

    def update(self, record: OperationRecord) -> None:
        """Note how one is doing, or what has come of it."""
        with self._lock:
            self._db.execute("UPDATE operations SET facts = ? WHERE id = ?", (_stored(record), record.id))

    def get(self, id: str) -> OperationRecord | None:
        """Return one by its id."""
        return next(iter(self._read("SELECT host, pid, facts FROM operations WHERE id = ?", id)), None)

    def all(self) -> list[OperationRecord]:
        """Return all that are kept, the newest first."""
        return self._read("SELECT host, pid, facts FROM operations ORDER BY number DESC")

    def close(self) -> None:
        """Release the file."""
        with self._lock:
            self._db.close()

    def _read(self, query: str, *values: str) -> list[OperationRecord]:
        with self._lock:
            rows = self._db.execute(query, values).fetchall()
        return [_record(host, pid, facts) for host, pid, facts in rows]


def _stored(record: OperationRecord) -> str:
    return json.dumps(asdict(record))


def _record(host: str, pid: int, facts: str) -> OperationRecord:
    record = OperationRecord(**json.loads(facts))
    if record.state != "running" or may_be_alive(host, pid):
        return record
    error = {"message": "the server ended before it did", "detail": None, "hint": "begin it anew"}
    return replace(record, state="failed", error=error, ended=record.ended or time.time())
