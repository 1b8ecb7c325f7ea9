"""Connections to a SQLite file of ours, such as a view store: one that writes, any number that read.

Invariant: a connection is used by one thread at a time, in the process that opened it; what SQLite
refuses reaches the caller as an error that names the store.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
import threading
import time
import urllib.parse
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from headwater import durable
from headwater.errors import HeadwaterError, RowError, SinkRefused, SinkUnavailable, UsageError
from headwater.sqlite_wal import write_ahead
from headwater.stores import disk

Durability = Literal["fsync", "os"]
_BUSY_SECONDS = 60.0
_MAKING_SECONDS = 5.0
_TRANSIENT = {
    sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_PROTOCOL, sqlite3.SQLITE_SCHEMA, sqlite3.SQLITE_INTERRUPT,
}  # fmt: skip
"""What may pass by itself; everything else stops the node."""
_ROW_ERRORS = {sqlite3.SQLITE_TOOBIG, sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_MISMATCH}
_IDLE = 8
"""How many reading connections are kept open for the next reader."""

_TABLES = """
CREATE TABLE IF NOT EXISTS views (
    id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL, version INTEGER NOT NULL,
    columns TEXT NOT NULL, key TEXT NOT NULL, published INTEGER NOT NULL,
    batch INTEGER NOT NULL DEFAULT -1, epoch INTEGER NOT NULL DEFAULT 0,
    positions TEXT NOT NULL DEFAULT '', clock INTEGER, filled INTEGER NOT NULL DEFAULT 0,
    UNIQUE (name, version)
);
CREATE UNIQUE INDEX IF NOT EXISTS published ON views (name) WHERE published;
"""


@dataclass(frozen=True)
class FileKind:
    """What a file is for; its mark is the application id in its header, which no other database has."""

    name: str
    mark: int
    format: int
    tables: str
    outdated: str
    """What to do with a file of an older format."""


VIEW_STORE = FileKind(
    "view store", 0x68777673, 2, _TABLES, "delete the pipeline's home: its views are computed anew"
)


class Writer:
    """The connection that changes a store; all sinks of one store take turns with it."""

    def __init__(self, path: Path, durability: Durability, kind: FileKind = VIEW_STORE):
        if durability not in ("fsync", "os"):
            raise UsageError(f'durability is "fsync" or "os", not "{durability}"')
        self._path, self._kind, self._process = path, kind, os.getpid()
        self._lock = threading.RLock()
        with translated_errors(path, kind):
            self._db = _create(path, durability, kind)

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Change the store, all or nothing."""
        if os.getpid() != self._process:
            raise UsageError(
                f"the {self._kind.name} was opened in another process", hint="open it again after a fork"
            )
        with self._lock, translated_errors(self._path, self._kind):
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield self._db
                self._db.execute("COMMIT")
            finally:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")

    def close(self) -> None:
        """Close the connection."""
        with self._lock:
            self._db.close()


class SqliteReaders:
    """Connections for reading, lent to whoever reads and kept for the next."""

    def __init__(self, path: Path, kind: FileKind = VIEW_STORE):
        if not path.exists():
            raise UsageError(
                f'no {kind.name} at "{path}"', hint="it is there when its pipeline has run for the first time"
            )
        self._path, self._kind, self._process = path, kind, os.getpid()
        self._idle: list[sqlite3.Connection] = []

    @contextmanager
    def lend(self) -> Iterator[sqlite3.Connection]:
        """Lend a connection on which nobody else is reading."""
        with translated_errors(self._path, self._kind):
            db = self._take()
            try:
                yield db
            finally:
                self._give_back(db)

    @contextmanager
    def snapshot(self) -> Iterator[sqlite3.Connection]:
        """Lend a connection that sees the store as it is at its first query, until the end."""
        with self.lend() as db, read_transaction(db):
            yield db

    def close(self) -> None:
        """Close what is not lent."""
        while self._idle:
            self._idle.pop().close()

    def _take(self) -> sqlite3.Connection:
        if os.getpid() != self._process:
            # Closing a parent's connection here would drop locks that the parent holds.
            self._process, self._idle = os.getpid(), []
        with suppress(IndexError):
            return self._idle.pop()
        return _open_for_reading(self._path, self._kind)

    def _give_back(self, db: sqlite3.Connection) -> None:
        if len(self._idle) < _IDLE:
            self._idle.append(db)
        else:
            db.close()


@contextmanager
def read_transaction(db: sqlite3.Connection) -> Iterator[None]:
    """Let a connection see the store as it is at its first query, until the end."""
    db.execute("BEGIN")
    try:
        yield
    finally:
        if db.in_transaction:
            db.execute("ROLLBACK")


@contextmanager
def translated_errors(path: Path, kind: FileKind = VIEW_STORE) -> Iterator[None]:
    """Raise errors of SQLite and of the disk as our own, which name the store."""
    try:
        yield
    except sqlite3.ProgrammingError as error:
        if "closed database" not in str(error):
            raise
        raise UsageError(f'{kind.name} "{path}" is closed') from None
    except OSError as error:
        raise disk.sink_error(error, f'{kind.name} "{path}"') from error
    except sqlite3.Error as error:
        raise _sink_error(error, f'{kind.name} "{path}"') from error


def _sink_error(error: sqlite3.Error, what: str) -> HeadwaterError:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # without what SQLite adds to it
    if code == sqlite3.SQLITE_FULL:
        return disk.full(what, str(error))
    if code in _ROW_ERRORS:
        return RowError(f"a row does not fit {what}", detail=str(error))
    kind = SinkUnavailable if code in _TRANSIENT else SinkRefused
    return kind(
        f"{what} cannot be used",
        detail=str(error),
        hint="check the disk, and the owner and permissions of the file and its directory",
    )


def _connect(database: Path | str, uri: bool = False) -> sqlite3.Connection:
    return sqlite3.connect(
        database, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False, uri=uri
    )


def _create(path: Path, durability: Durability, kind: FileKind) -> sqlite3.Connection:
    durable.make(path.parent)
    db = _connect(path)
    try:
        _check_format(db, path, kind)
        write_ahead(db, _BUSY_SECONDS)
        db.execute(f"PRAGMA synchronous={'FULL' if durability == 'fsync' else 'NORMAL'}")
        db.execute("PRAGMA temp_store=MEMORY")
        db.execute("PRAGMA cache_size=-65536")
        db.execute("PRAGMA journal_size_limit=67108864")  # one large batch must not hold its space for ever
        marks = f"PRAGMA user_version={kind.format}; PRAGMA application_id={kind.mark};"
        db.executescript(f"BEGIN IMMEDIATE; {kind.tables} {marks} COMMIT;")
    except BaseException:
        db.close()
        raise
    return db


def _open_for_reading(path: Path, kind: FileKind) -> sqlite3.Connection:
    """Open a store so that reading it changes nothing, also in a place which cannot be written.

    Who may write, and is the last to close, moves the write-ahead log into the file; who may not leaves an
    empty one behind where there was none.
    """
    first, *others = (
        (_mode("ro"), _copy) if _has_log(path) else (_mode("rw"), _mode("ro"), _mode("ro&immutable=1"))
    )
    try:
        return _opened(first(path), path, kind)
    except sqlite3.OperationalError as error:
        for way in others if error.sqlite_errorcode & 0xFF in _CANNOT_CREATE else ():
            with suppress(sqlite3.OperationalError):
                return _opened(way(path), path, kind)
        raise


_CANNOT_CREATE = (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY)
"""What SQLite says where it cannot make the files beside a store by which readers and a writer agree."""


def _has_log(path: Path) -> bool:
    """Tell whether the write-ahead log of a store holds anything."""
    try:
        return _log(path).stat().st_size > 0
    except FileNotFoundError:
        return False


def _log(path: Path) -> Path:
    return path.with_name(f"{path.name}-wal")


def _mode(name: str) -> Callable[[Path], sqlite3.Connection]:
    return lambda path: _connect(f"file:{urllib.parse.quote(str(path))}?mode={name}", uri=True)


def _copy(path: Path) -> sqlite3.Connection:
    """Open a copy of a store and its log, which nobody can be writing: it would have made its files here."""
    with tempfile.TemporaryDirectory() as folder:
        copied = Path(folder) / path.name
        for source, target in ((path, copied), (_log(path), _log(copied))):
            shutil.copyfile(source, target)
        db = _connect(copied)
        _has_tables(db)  # opens both, which need no name from then on
        return db


def _opened(db: sqlite3.Connection, path: Path, kind: FileKind) -> sqlite3.Connection:
    try:
        db.execute("PRAGMA query_only=1")
        _await_tables(db, path, kind)  # opens the file, which connecting does not
        _check_format(db, path, kind)
        return db
    except BaseException:
        db.close()
        raise


def _await_tables(db: sqlite3.Connection, path: Path, kind: FileKind) -> None:
    """Wait for a store that another process is just making: there is a moment when its file is empty."""
    until = time.monotonic() + _MAKING_SECONDS
    while not _has_tables(db):
        if time.monotonic() > until:
            raise SinkUnavailable(f'"{path}" is empty, and no {kind.name}', hint="run its pipeline first")
        time.sleep(0.01)


def _has_tables(db: sqlite3.Connection) -> bool:
    return bool(db.execute("SELECT EXISTS (SELECT 1 FROM sqlite_master)").fetchone()[0])


def _check_format(db: sqlite3.Connection, path: Path, kind: FileKind) -> None:
    """Refuse a database of something else, or of a newer format; an empty one is neither."""
    if not _has_tables(db):
        return
    if db.execute("PRAGMA application_id").fetchone()[0] != kind.mark:
        raise SinkRefused(f'"{path}" is a database, but no {kind.name}', hint="choose another path")
    format = int(db.execute("PRAGMA user_version").fetchone()[0])
    if format != kind.format:
        newer = format > kind.format
        raise SinkRefused(
            f'{kind.name} "{path}" was made by {"a newer" if newer else "an older"} Headwater',
            detail=f"its format is {format}, this one knows {kind.format}",
            hint="upgrade Headwater" if newer else kind.outdated,
        )
