"""What an embedded log keeps beside its records: committed offsets, members, owners, producers' epochs.

One SQLite file, so that a commit and the check that its member still owns the partition are one
transaction. A topic is its identity here, and what a group has committed outlives it, so that the group
is refused by a topic that was made again under the old name.

Invariant: a change is stored whole or not at all, and never into a file that was deleted meanwhile.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping
from pathlib import Path

from headwater.log.embedded.state_file import StateFile
from headwater.topic import Topic

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


class StateStore(StateFile):
    """The SQLite file of groups and producers' epochs; one connection, used by one thread at a time."""

    def __init__(self, path: Path):
        super().__init__(path, path.parent, _TABLES, "groups")

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
