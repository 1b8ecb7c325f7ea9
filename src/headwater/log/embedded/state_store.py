"""What an embedded log keeps beside its records: committed offsets, members, owners, producers' epochs.

One SQLite file, so that a commit and the check that its member still owns the partition are one
transaction. A topic is its identity here, and what a group has committed outlives it, so that the group
is refused by a topic that was made again under the old name.

Invariant: a change is stored whole or not at all, and never into a file that was deleted meanwhile.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import urllib.parse
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from headwater.errors import LogRefused, LogUnavailable, UsageError
from headwater.log.embedded.failures import log_deleted
from headwater.log.process import check_process
from headwater.sqlite_wal import write_ahead
from headwater.topic import Topic

_BUSY_SECONDS = 60.0
_TRANSIENT = {
    sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_FULL, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_PROTOCOL, sqlite3.SQLITE_INTERRUPT,
}  # fmt: skip
"""What may pass by itself."""
_FORMER = "grp = ? AND topic IN (SELECT topic FROM names WHERE name = ? AND topic <> ?)"

_TABLES = """
CREATE TABLE IF NOT EXISTS offsets (
    grp TEXT, topic TEXT, partition INTEGER, next INTEGER, PRIMARY KEY (grp, topic, partition)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS names (topic TEXT PRIMARY KEY, name TEXT) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS members (
    grp TEXT, topic TEXT, member TEXT, polled REAL, PRIMARY KEY (grp, topic, member)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS owners (
    grp TEXT, topic TEXT, partition INTEGER, member TEXT, term TEXT, PRIMARY KEY (grp, topic, partition)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS epochs (
    topic TEXT, producer TEXT, epoch INTEGER, PRIMARY KEY (topic, producer)
) WITHOUT ROWID;
"""


class StateStore:
    """The SQLite file of groups and producers' epochs; one connection, used by one thread at a time."""

    def __init__(self, path: Path):
        self._path = path
        self._process = os.getpid()
        self._lock = threading.RLock()
        with self._errors():
            self._db = _read_only(path) if _unwritable(path) else _connect(path)
        self._file = _inode(path)

    @contextmanager
    def transaction(self, durable: bool = False) -> Iterator[sqlite3.Connection]:
        """Change the state, all or nothing; ``durable`` means before a power loss can take it."""
        check_process(self._process)
        self._check_there()
        with self._lock, self._errors():
            self._db.execute(f"PRAGMA synchronous={'FULL' if durable else 'NORMAL'}")
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield self._db
                self._db.execute("COMMIT")
            finally:
                if self._db.in_transaction:  # SQLite may have rolled back by itself, as on a full disk
                    self._db.execute("ROLLBACK")

    def _check_there(self) -> None:
        """Refuse to store into a file that was deleted: SQLite would not say so."""
        if self._file is not None and _inode(self._path) != self._file:
            if not self._path.parent.exists():
                raise log_deleted(self._path.parent)
            raise LogRefused(
                f'groups of log "{self._path.parent}" are gone',
                detail=f'"{self._path}" was deleted or replaced while it was open; nothing was stored',
                hint="put it back, or open the log again: groups then begin anew",
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
                f'groups of log "{self._path.parent}" cannot be used',
                detail=str(error),
                hint="check the disk and the directory's owner and permissions",
            ) from None

    def rows(self, query: str, values: tuple[object, ...] = ()) -> list[tuple[object, ...]]:
        """Return the rows of a query."""
        check_process(self._process)
        with self._lock, self._errors():
            return self._db.execute(query, values).fetchall()

    def version(self) -> int:
        """Return a number that differs when another connection has changed the state."""
        with self._lock, self._errors():
            return int(self._db.execute("PRAGMA data_version").fetchone()[0])

    def next_epoch(self, topic: str, producer: str, above: int = 0) -> int:
        """Return a higher epoch than any before for this producer, and than ``above``."""
        with self.transaction(durable=True) as db:
            db.execute(
                "INSERT INTO epochs VALUES (?, ?, ?) "
                "ON CONFLICT DO UPDATE SET epoch = MAX(epoch + 1, excluded.epoch)",
                (topic, producer, above + 1),
            )
        return self.epoch(topic, producer)

    def epoch(self, topic: str, producer: str) -> int:
        """Return the newest epoch of a producer."""
        query = "SELECT epoch FROM epochs WHERE topic = ? AND producer = ?"
        return max((int(row[0]) for row in self.rows(query, (topic, producer))), default=0)  # type: ignore[call-overload]

    def committed(self, group: str, topic: str) -> dict[int, int]:
        """Return the offsets a group has committed for a topic."""
        query = "SELECT partition, next FROM offsets WHERE grp = ? AND topic = ?"
        return {int(p): int(o) for p, o in self.rows(query, (group, topic))}  # type: ignore[call-overload]

    def former(self, group: str, topic: Topic) -> str | None:
        """Return another topic that had this one's name and of which a group has committed offsets."""
        rows = self.rows(f"SELECT MAX(topic) FROM offsets WHERE {_FORMER}", (group, topic.name, topic.id))  # noqa: S608  # a fixed text
        return None if rows[0][0] is None else str(rows[0][0])

    def set_committed(self, group: str, topic: Topic, offsets: Mapping[int, int]) -> None:
        """Set committed offsets; living owners lose their partitions and start there again."""
        with self.transaction() as db:
            db.execute(f"DELETE FROM offsets WHERE {_FORMER}", (group, topic.name, topic.id))  # noqa: S608  # a fixed text
            store_offsets(db, group, topic, offsets)
            db.execute("DELETE FROM owners WHERE grp = ? AND topic = ?", (group, topic.id))

    def forget_group(self, group: str, is_living: Callable[[str, str], bool]) -> bool:
        """Drop everything about a group, if none of its members lives; tell whether it was done.

        ``is_living`` is asked with the topic's identity and the member's id.
        """
        with self.transaction(durable=True) as db:
            members = db.execute("SELECT topic, member FROM members WHERE grp = ?", (group,)).fetchall()
            if any(is_living(topic, member) for topic, member in members):
                return False
            for table in ("offsets", "members", "owners"):
                db.execute(f"DELETE FROM {table} WHERE grp = ?", (group,))  # noqa: S608  # a fixed name
            db.execute("DELETE FROM names WHERE topic NOT IN (SELECT topic FROM offsets)")
        return True

    def forget(self, topic: str) -> None:
        """Drop everything about a topic that is deleted, but what groups had committed for it."""
        with self.transaction(durable=True) as db:
            for table in ("members", "owners", "epochs"):
                db.execute(f"DELETE FROM {table} WHERE topic = ?", (topic,))  # noqa: S608  # a fixed name

    def close(self) -> None:
        """Close the connection."""
        with self._lock:
            self._db.close()


def _connect(database: Path | str, uri: bool = False) -> sqlite3.Connection:
    db = sqlite3.connect(
        database, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False, uri=uri
    )
    try:
        if not uri:
            write_ahead(db, _BUSY_SECONDS)
            db.executescript(_TABLES)
        db.execute("SELECT 1 FROM offsets LIMIT 1")  # opens the file, which connecting does not
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


def _read_only(path: Path) -> sqlite3.Connection:
    """Open the state in a directory that cannot be written: lag can be asked for there too."""
    if not path.exists():
        return _connect(":memory:")
    name = f"file:{urllib.parse.quote(str(path))}"
    try:
        return _connect(f"{name}?mode=ro", uri=True)
    except sqlite3.OperationalError:  # no writer has left the files of its log: nothing can change
        return _connect(f"{name}?immutable=1", uri=True)


def store_offsets(db: sqlite3.Connection, group: str, topic: Topic, offsets: Mapping[int, int]) -> None:
    """Set committed offsets, within a transaction."""
    db.execute("INSERT OR IGNORE INTO names VALUES (?, ?)", (topic.id, topic.name))
    db.executemany(
        "INSERT INTO offsets VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET next = excluded.next",
        [(group, topic.id, partition, offset) for partition, offset in offsets.items()],
    )


class SharedEpochs:
    """The epochs of one producer id of a topic."""

    def __init__(self, state: StateStore, topic: str, producer: str):
        self._state, self._key = state, (topic, producer)

    def next(self, above: int) -> int:
        """Begin a new epoch, higher than any before and than ``above``."""
        return self._state.next_epoch(*self._key, above)

    def current(self) -> int:
        """Return the newest epoch."""
        return self._state.epoch(*self._key)
