"""Consumer groups of the embedded log: members, who owns which partition, committed offsets.

A member holds a lock on a file of its own: when its process dies the kernel lets go of the lock,
and the others see it at once, without heartbeats. Ownership and offsets live in SQLite, so a
commit and the check that its member still owns the partition are one transaction. A topic is its
identity here, and what a group has committed outlives it, so that the group is told of a topic
that was made again under the old name.

Invariant: at any time a partition has at most one owner in a group, and only it can commit.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
import threading
import time
import urllib.parse
import uuid
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from headwater.errors import Fenced, LogRefused, LogUnavailable, UsageError
from headwater.log.embedded.failures import gone
from headwater.log.process import check_process
from headwater.topic import Topic, replaced_for
from headwater.wal import write_ahead

MAX_POLL_SECONDS = 300.0
"""A member that has not polled for this long is taken for dead, though its process lives."""
CHECK_SECONDS = 0.5
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


class State:
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
                raise gone(self._path.parent)
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
            _store(db, group, topic, offsets)
            db.execute("DELETE FROM owners WHERE grp = ? AND topic = ?", (group, topic.id))

    def forget_group(self, group: str, home: Path) -> bool:
        """Drop everything about a group, if none of its members lives; tell whether it was done."""
        with self.transaction(durable=True) as db:
            members = db.execute("SELECT topic, member FROM members WHERE grp = ?", (group,)).fetchall()
            if any(_holds_lock(home / f"{group}@{topic}" / member) for topic, member in members):
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
        found = os.stat(path)
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def _unwritable(path: Path) -> bool:
    return not os.access(path if path.exists() else path.parent, os.W_OK)


def _read_only(path: Path) -> sqlite3.Connection:
    """Open the state in a place that cannot be written: who is behind can be asked there too."""
    if not path.exists():
        return _connect(":memory:")
    name = f"file:{urllib.parse.quote(str(path))}"
    try:
        return _connect(f"{name}?mode=ro", uri=True)
    except sqlite3.OperationalError:  # no writer has left the files of its log: nothing can change
        return _connect(f"{name}?immutable=1", uri=True)


class SharedEpochs:
    """The epochs of one producer id of a topic."""

    def __init__(self, state: State, topic: str, producer: str):
        self._state, self._of = state, (topic, producer)

    def next(self, above: int) -> int:
        """Begin a new epoch, higher than any before and than ``above``."""
        return self._state.next_epoch(*self._of, above)

    def current(self) -> int:
        """Return the newest epoch."""
        return self._state.epoch(*self._of)


def _store(db: sqlite3.Connection, group: str, topic: Topic, offsets: Mapping[int, int]) -> None:
    db.execute("INSERT OR IGNORE INTO names VALUES (?, ?)", (topic.id, topic.name))
    db.executemany(
        "INSERT INTO offsets VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET next = excluded.next",
        [(group, topic.id, partition, offset) for partition, offset in offsets.items()],
    )


class Member:
    """One living member of a group, for one topic."""

    def __init__(
        self, state: State, directory: Path, group: str, topic: Topic, partitions: Callable[[], int]
    ):
        self.directory = directory
        self._state, self._partitions = state, partitions
        self.group = group
        self._topic = topic
        self._of = (group, topic.id)
        self._process = os.getpid()
        directory.mkdir(parents=True, exist_ok=True)
        self._join()
        _members.add(self)

    def _join(self) -> None:
        """Become a member, by a lock on a file of one's own."""
        self.id = uuid.uuid4().hex
        self.file = open(self.directory / self.id, "w")
        fcntl.flock(self.file, fcntl.LOCK_EX)
        self._owned: dict[int, str] = {}
        self._version = -1
        self._checked = 0.0

    def owned(self) -> dict[int, str]:
        """Return the partitions owned now, each with a mark that differs when it is lost and regained.

        Gives up what others are due and takes what is free. Called at every poll; looks into the
        state only when it has changed, or now and then.
        """
        check_process(self._process)
        now = time.monotonic()
        version = self._state.version()
        if version != self._version or now - self._checked > CHECK_SECONDS:
            before = self._owned
            self._owned = self._balance()
            self._version, self._checked = self._state.version(), now
            if before.keys() - self._owned.keys():
                self.notify()
        return self._owned

    def look_again(self) -> None:
        """Let the next ``owned`` look into the state: a member may have come, gone or died."""
        self._checked = 0.0

    def commit(self, offsets: Mapping[int, int]) -> None:
        """Commit, if every one of the partitions has been owned without a break."""
        check_process(self._process)
        with self._state.transaction() as db:
            query = "SELECT partition, term FROM owners WHERE grp = ? AND topic = ? AND member = ?"
            mine = dict(db.execute(query, (*self._of, self.id)).fetchall())
            lost = sorted(p for p in offsets if p not in mine or mine[p] != self._owned.get(p))
            if lost:
                raise fenced(self.group, lost)
            _store(db, self.group, self._topic, offsets)

    def found(self, offsets: Mapping[int, int]) -> None:
        """Commit where the group begins, in all partitions, if it has committed nothing yet."""
        former = self._state.former(self.group, self._topic)
        if former is not None:
            raise replaced_for(self.group, self._topic, former)
        with self._state.transaction() as db:
            query = "SELECT 1 FROM offsets WHERE grp = ? AND topic = ? LIMIT 1"
            if db.execute(query, self._of).fetchone() is None:
                _store(db, self.group, self._topic, offsets)

    def notify(self) -> None:
        """Wake the other members, so that they look at once."""
        with suppress(FileNotFoundError), open(self.directory / "changed", "w"):
            pass

    def close(self) -> None:
        """Leave the group."""
        _members.discard(self)
        with suppress(LogUnavailable), self._state.transaction() as db:  # a log that is gone has no members
            _remove(db, (*self._of, self.id))
        (self.directory / self.id).unlink(missing_ok=True)
        self.file.close()
        self.notify()

    def _balance(self) -> dict[int, str]:
        if not (self.directory / self.id).exists():  # others took this member for dead: it begins anew
            self.file.close()
            self._join()
        with self._state.transaction() as db:
            members = self._living(db)
            query = "SELECT partition, member, term FROM owners WHERE grp = ? AND topic = ?"
            owners = db.execute(query, self._of).fetchall()
            mine = {partition: term for partition, member, term in sorted(owners) if member == self.id}
            count = self._partitions()
            quota = count // len(members) + (members.index(self.id) < count % len(members))
            for partition in list(mine)[quota:]:
                del mine[partition]
                db.execute(
                    "DELETE FROM owners WHERE grp = ? AND topic = ? AND partition = ?", (*self._of, partition)
                )
            taken = {partition for partition, _, _ in owners}
            free = [p for p in range(count) if p not in taken][: max(0, quota - len(mine))]
            new = {partition: uuid.uuid4().hex for partition in free}
            rows = [(*self._of, partition, self.id, term) for partition, term in new.items()]
            db.executemany("INSERT INTO owners VALUES (?, ?, ?, ?, ?)", rows)
        return mine | new

    def _living(self, db: sqlite3.Connection) -> list[str]:
        """Return all members that live, by id, and remove the dead."""
        now = time.monotonic()  # the same in all processes, and not moved by setting the clock
        db.execute("INSERT OR REPLACE INTO members VALUES (?, ?, ?, ?)", (*self._of, self.id, now))
        query = "SELECT member, polled FROM members WHERE grp = ? AND topic = ?"
        living = []
        for member, polled in db.execute(query, self._of).fetchall():
            if member == self.id or (
                now - polled < MAX_POLL_SECONDS and _holds_lock(self.directory / member)
            ):
                living.append(member)
            else:
                _remove(db, (*self._of, member))
                (self.directory / member).unlink(missing_ok=True)
        return sorted(living)


_members: weakref.WeakSet[Member] = weakref.WeakSet()


def _let_go_in_child() -> None:
    """A forked child must not hold its parent's membership: the lock would outlive the parent."""
    for member in _members:
        member.file.close()


os.register_at_fork(after_in_child=_let_go_in_child)


def fenced(group: str, lost: Sequence[int]) -> Fenced:
    """Return the error for a commit of partitions that are no longer owned."""
    return Fenced(
        f'consumer of group "{group}" no longer owns partition {", ".join(map(str, lost))}',
        detail="another member has it, or a seek moved the group; nothing was committed",
        hint="go on polling: what was not committed is delivered to the new owner",
    )


def _holds_lock(path: Path) -> bool:
    """Tell whether the member that this file is of lives."""
    try:
        fd = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return False
    except BlockingIOError:
        return True
    finally:
        os.close(fd)


def _remove(db: sqlite3.Connection, member: tuple[str, str, str]) -> None:
    db.execute("DELETE FROM members WHERE grp = ? AND topic = ? AND member = ?", member)
    db.execute("DELETE FROM owners WHERE grp = ? AND topic = ? AND member = ?", member)
