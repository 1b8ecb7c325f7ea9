"""Members of consumer groups of the embedded log, and who of them owns which partition.

A member holds a lock on a file of its own: when its process dies the kernel lets go of the lock,
and the others see it at once, without heartbeats. Ownership and offsets are in ``state_store.py``.

Invariant: at any time a partition has at most one owner in a group, and only it can commit.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
import time
import uuid
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from headwater.errors import Fenced, LogUnavailable
from headwater.log.embedded.state_store import StateStore, store_offsets
from headwater.log.process import check_process
from headwater.topic import Topic
from headwater.topic_errors import replaced_for

MAX_POLL_SECONDS = 300.0
"""A member that has not polled for this long is taken for dead, though its process lives."""
CHECK_SECONDS = 0.5


class Member:
    """One living member of a group, for one topic."""

    def __init__(
        self, state: StateStore, directory: Path, group: str, topic: Topic, partitions: Callable[[], int]
    ):
        self.directory = directory
        self._state, self._partitions = state, partitions
        self.group = group
        self._topic = topic
        self._key = (group, topic.id)
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

        Gives up what others are due and takes what is free. Called at every poll; reads the
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

    def invalidate(self) -> None:
        """Let the next ``owned`` read the state: a member may have come, gone or died."""
        self._checked = 0.0

    def commit(self, offsets: Mapping[int, int]) -> None:
        """Commit, if every one of the partitions has been owned without a break."""
        check_process(self._process)
        with self._state.transaction() as db:
            query = "SELECT partition, term FROM owners WHERE grp = ? AND topic = ? AND member = ?"
            mine = dict(db.execute(query, (*self._key, self.id)).fetchall())
            lost = sorted(p for p in offsets if p not in mine or mine[p] != self._owned.get(p))
            if lost:
                raise fenced(self.group, lost)
            store_offsets(db, self.group, self._topic, offsets)

    def commit_start(self, offsets: Mapping[int, int]) -> None:
        """Commit where the group begins, in all partitions, if it has committed nothing yet."""
        former = self._state.former(self.group, self._topic)
        if former is not None:
            raise replaced_for(self.group, self._topic, former)
        with self._state.transaction() as db:
            query = "SELECT 1 FROM offsets WHERE grp = ? AND topic = ? LIMIT 1"
            if db.execute(query, self._key).fetchone() is None:
                store_offsets(db, self.group, self._topic, offsets)

    def notify(self) -> None:
        """Wake the other members, so that they look at once."""
        with suppress(FileNotFoundError), open(self.directory / "changed", "w"):
            pass

    def close(self) -> None:
        """Leave the group."""
        _members.discard(self)
        with suppress(LogUnavailable), self._state.transaction() as db:  # a log that is gone has no members
            _remove(db, (*self._key, self.id))
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
            owners = db.execute(query, self._key).fetchall()
            mine = {partition: term for partition, member, term in sorted(owners) if member == self.id}
            count = self._partitions()
            quota = count // len(members) + (members.index(self.id) < count % len(members))
            for partition in list(mine)[quota:]:
                del mine[partition]
                db.execute(
                    "DELETE FROM owners WHERE grp = ? AND topic = ? AND partition = ?",
                    (*self._key, partition),
                )
            held = {partition for partition, _, _ in owners}
            free = [p for p in range(count) if p not in held][: max(0, quota - len(mine))]
            new = {partition: uuid.uuid4().hex for partition in free}
            rows = [(*self._key, partition, self.id, term) for partition, term in new.items()]
            db.executemany("INSERT INTO owners VALUES (?, ?, ?, ?, ?)", rows)
        return mine | new

    def _living(self, db: sqlite3.Connection) -> list[str]:
        """Return all members that live, by id, and remove the dead."""
        now = time.monotonic()  # the same in all processes, and not moved by setting the clock
        db.execute("INSERT OR REPLACE INTO members VALUES (?, ?, ?, ?)", (*self._key, self.id, now))
        query = "SELECT member, polled FROM members WHERE grp = ? AND topic = ?"
        living = []
        for member, polled in db.execute(query, self._key).fetchall():
            if member == self.id or (now - polled < MAX_POLL_SECONDS and holds_lock(self.directory / member)):
                living.append(member)
            else:
                _remove(db, (*self._key, member))
                (self.directory / member).unlink(missing_ok=True)
        return sorted(living)


_members: weakref.WeakSet[Member] = weakref.WeakSet()


def _release_in_child() -> None:
    """A forked child must not hold its parent's membership: the lock would outlive the parent."""
    for member in _members:
        member.file.close()


os.register_at_fork(after_in_child=_release_in_child)


def fenced(group: str, partitions: Sequence[int]) -> Fenced:
    """Return the error for a commit of partitions that are no longer owned."""
    return Fenced(
        f'consumer of group "{group}" no longer owns partition {", ".join(map(str, partitions))}',
        detail="another member has it, or a seek moved the group; nothing was committed",
        hint="go on polling: what was not committed is delivered to the new owner",
    )


def holds_lock(path: Path) -> bool:
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
