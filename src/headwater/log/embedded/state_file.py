"""A SQLite file beside an embedded log's records: opened by several processes, changed whole or not at all.

Groups have one for the whole log (``state_store.py``), each queue has one of its own (``queue/store.py``).
Invariant: a change is stored whole or not at all, and never into a file that was deleted meanwhile.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import urllib.parse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from headwater.errors import LogRefused, LogUnavailable, UsageError
from headwater.log.embedded.failures import log_deleted
from headwater.log.process import check_process
from headwater.sqlite_wal import write_ahead

_BUSY_SECONDS = 60.0
_TRANSIENT = {
    sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_FULL, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_PROTOCOL, sqlite3.SQLITE_INTERRUPT,
}  # fmt: skip
"""What may pass by itself."""


class StateFile:
    """One SQLite file; one connection, used by one thread at a time."""

    def __init__(self, path: Path, root: Path, tables: str, what: str):
        self.path, self._root, self._what = path, root, what
        self._process = os.getpid()
        self._lock = threading.RLock()
        self._synchronous = ""
        with self._errors():
            self._db = _read_only(path, tables) if _unwritable(path) else _connect(path, tables)
        self._file = _inode(path)

    @contextmanager
    def transaction(self, durable: bool = False) -> Iterator[sqlite3.Connection]:
        """Change the state, all or nothing; ``durable`` means before a power loss can take it."""
        check_process(self._process)
        self._check_there()
        with self._lock, self._errors():
            self._set_synchronous("FULL" if durable else "NORMAL")
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield self._db
                self._db.execute("COMMIT")
            finally:
                if self._db.in_transaction:  # SQLite may have rolled back by itself, as on a full disk
                    self._db.execute("ROLLBACK")

    def rows(self, query: str, values: tuple[object, ...] = ()) -> list[tuple[object, ...]]:
        """Return the rows of a query."""
        check_process(self._process)
        with self._lock, self._errors():
            return self._db.execute(query, values).fetchall()

    def version(self) -> int:
        """Return a number that differs when another connection has changed the state."""
        with self._lock, self._errors():
            return int(self._db.execute("PRAGMA data_version").fetchone()[0])

    def close(self) -> None:
        """Close the connection."""
        with self._lock:
            self._db.close()

    def _set_synchronous(self, level: str) -> None:
        if level != self._synchronous:
            self._db.execute(f"PRAGMA synchronous={level}")
            self._synchronous = level

    def _check_there(self) -> None:
        """Refuse to store into a file that was deleted: SQLite would not say so."""
        if self._file is not None and _inode(self.path) != self._file:
            if not self._root.exists():
                raise log_deleted(self._root)
            raise self._gone()

    def _gone(self) -> LogRefused:
        return LogRefused(
            f'{self._what} of log "{self._root}" are gone',
            detail=f'"{self.path}" was deleted or replaced while it was open; nothing was stored',
            hint=f"put it back, or open the log again: {self._what} then begin anew",
        )

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.ProgrammingError:
            raise UsageError("the log is closed", hint="close its producers and consumers first") from None
        except sqlite3.DatabaseError as error:
            code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # without what SQLite adds to it
            raise (LogUnavailable if code in _TRANSIENT else LogRefused)(
                f'{self._what} of log "{self._root}" cannot be used',
                detail=str(error),
                hint="check the disk and the directory's owner and permissions",
            ) from None


def _connect(database: Path | str, tables: str, uri: bool = False) -> sqlite3.Connection:
    db = sqlite3.connect(
        database, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False, uri=uri
    )
    try:
        if not uri:
            write_ahead(db, _BUSY_SECONDS)
            db.executescript(tables)
        db.execute("SELECT 1 FROM sqlite_master LIMIT 1")  # opens the file, which connecting does not
    except BaseException:
        db.close()
        raise
    return db


def _inode(path: Path) -> tuple[int, int] | None:
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino


def _unwritable(path: Path) -> bool:
    return not os.access(path if path.exists() else path.parent, os.W_OK)


def _read_only(path: Path, tables: str) -> sqlite3.Connection:
    """Open the state in a directory that cannot be written: lag can be asked for there too."""
    if not path.exists():
        return _connect(":memory:", tables)
    name = f"file:{urllib.parse.quote(str(path))}"
    try:
        return _connect(f"{name}?mode=ro", tables, uri=True)
    except sqlite3.OperationalError:  # no writer has left the files of its log: nothing can change
        return _connect(f"{name}?immutable=1", tables, uri=True)
