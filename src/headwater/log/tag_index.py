"""Which offsets of a topic have which tags: what is stored in SQLite, and what has come since in memory.

The index is derived from the records and never the truth: it says how far it has got, and whoever uses it
goes on from there with what the log holds; a file that is damaged, or of another log, is made anew. So it
is written now and then, many postings at once, and not synced.

Invariant: of the offsets before ``reached``, every posting is there; and nothing is stored of a record that
could still be taken back.
"""

from __future__ import annotations

import sqlite3
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from headwater.sqlite_wal import discard_damaged, write_ahead

FAR = 1 << 62
FLUSH_POSTINGS = 4096
"""How many postings are kept in memory before they are stored: few enough for a short pause."""
_BUSY_SECONDS = 60.0
_SAMPLE = 32
_TABLES = """
CREATE TABLE IF NOT EXISTS postings (
    tag BLOB, partition INTEGER, offset INTEGER, PRIMARY KEY (tag, partition, offset)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS frames (
    partition INTEGER, base INTEGER, segment INTEGER, at INTEGER, PRIMARY KEY (partition, base)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS reached (
    partition INTEGER PRIMARY KEY, until INTEGER, segment INTEGER, at INTEGER, anchor BLOB
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS settings (name TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID;
"""


class Place(NamedTuple):
    """Where a frame begins: the base of its segment, and the byte."""

    segment: int
    at: int


class Indexed(NamedTuple):
    """How far a partition is indexed."""

    until: int
    """The offset up to which every record is."""
    place: Place
    """Where the next frame begins."""
    anchor: bytes
    """What the last frame before that is known by: another one there is another log."""


_NOTHING = Indexed(0, Place(0, 0), b"")


@dataclass
class _Overlay:
    """What a partition has got since its postings were stored."""

    since: int
    reached: Indexed
    postings: dict[bytes, list[int]] = field(default_factory=dict)
    frames: list[tuple[int, Place]] = field(default_factory=list)
    count: int = 0


class TagIndex:
    """The postings of one topic; used by one thread at a time."""

    def __init__(self, path: Path | None):
        self._db = _opened(path)
        self._overlays: dict[int, _Overlay] = {}

    def setting(self, name: str, value: str) -> str:
        """Return what is noted under a name; if nothing is, note a value."""
        self._db.execute("INSERT OR IGNORE INTO settings VALUES (?, ?)", (name, value))
        return str(self._db.execute("SELECT value FROM settings WHERE name = ?", (name,)).fetchone()[0])

    def reached(self, partition: int) -> Indexed:
        """Return how far a partition is indexed."""
        return self._overlay(partition).reached

    def add_frame(self, partition: int, base: int, place: Place) -> None:
        """Note where a frame begins, and the first of its offsets."""
        self._overlay(partition).frames.append((base, place))

    def add(self, partition: int, base: int, tags: Sequence[Sequence[bytes]]) -> None:
        """Take in records from an offset on, each with its tags."""
        overlay = self._overlay(partition)
        for offset, each in enumerate(tags, base):
            for tag in each:
                overlay.postings.setdefault(tag, []).append(offset)
            overlay.count += len(each)

    def reach(self, partition: int, indexed: Indexed) -> None:
        """Note that all records up to an offset have been added."""
        self._overlay(partition).reached = indexed

    def newest(self, tags: Sequence[bytes], partition: int, after: int, before: int = FAR) -> int | None:
        """Return the newest offset from ``after`` on that has all the tags, if there is one."""
        if len(tags) > 1:
            return max(self.offsets(tags, partition, after, before), default=None)
        overlay = self._overlay(partition)
        later = overlay.postings.get(tags[0], ())
        at = bisect_left(later, before)
        if at:
            return later[at - 1] if later[at - 1] >= after else None
        if overlay.since <= after:
            return None
        query = (
            "SELECT max(offset) FROM postings WHERE tag = ? AND partition = ? AND offset >= ? AND offset < ?"
        )
        found: int | None = self._db.execute(query, (tags[0], partition, after, before)).fetchone()[0]
        return found

    def offsets(self, tags: Sequence[bytes], partition: int, after: int, before: int = FAR) -> list[int]:
        """Return the offsets from ``after`` on that have all the tags, in their order."""
        sample: dict[bytes, int] = {}
        for tag in tags:
            sample[tag] = self._count(tag, partition, after)
            if not sample[tag]:  # as of a request that is new
                return []
        rarest, *others = sorted(sample, key=sample.__getitem__)
        every = self._postings(rarest, partition, after, before)
        return [each for each in every if all(self._has(tag, partition, each) for tag in others)]

    def frame(self, partition: int, offset: int) -> tuple[int, Place]:
        """Return the frame that holds an offset: its first offset, and where it begins."""
        overlay = self._overlay(partition)
        at = bisect_right(overlay.frames, offset, key=lambda each: each[0])
        if at:
            return overlay.frames[at - 1]
        query = "SELECT base, segment, at FROM frames WHERE partition = ? AND base <= ?"
        base, segment, byte = self._db.execute(
            f"{query} ORDER BY base DESC LIMIT 1", (partition, offset)
        ).fetchone()
        return int(base), Place(int(segment), int(byte))

    def forget(self, partition: int) -> None:
        """Drop what was not stored yet: it is to be learnt again from the log."""
        self._overlays.pop(partition, None)

    def restart(self, partition: int) -> None:
        """Drop all of a partition: what is stored is not of this log."""
        self.forget(partition)
        self._db.execute("BEGIN IMMEDIATE")
        for table in ("postings", "frames", "reached"):
            self._db.execute(f"DELETE FROM {table} WHERE partition = ?", (partition,))  # noqa: S608  # a fixed name
        self._db.execute("COMMIT")

    def unstored(self, partition: int) -> int:
        """Return how many postings are in memory alone."""
        return self._overlay(partition).count

    def last_frame(self, partition: int) -> Place | None:
        """Return where the newest frame begins, of those that are in memory alone."""
        frames = self._overlay(partition).frames
        return frames[-1][1] if frames else None

    def flush(self, partition: int, anchor: bytes = b"") -> None:
        """Store what has come, with what its last frame is known by; all of it must be durable."""
        overlay = self._overlay(partition)
        if overlay.reached.until == overlay.since:
            return
        overlay.reached = overlay.reached._replace(anchor=anchor)
        self._db.execute("BEGIN IMMEDIATE")
        try:
            self._store(partition, overlay)
            self._db.execute("COMMIT")
        finally:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
        self.forget(partition)

    def close(self) -> None:
        """Let go of the file, with what was stored."""
        self._db.close()

    def _store(self, partition: int, overlay: _Overlay) -> None:
        since = self._stored(partition).until  # another process may have stored much of it
        every = overlay.postings.items()
        rows = sorted((tag, partition, each) for tag, offsets in every for each in offsets if each >= since)
        self._db.executemany("INSERT OR IGNORE INTO postings VALUES (?, ?, ?)", rows)
        frames = [(partition, base, *place) for base, place in overlay.frames if base >= since]
        self._db.executemany("INSERT OR IGNORE INTO frames VALUES (?, ?, ?, ?)", frames)
        until, place, anchor = overlay.reached
        if until > since:
            self._db.execute(
                "INSERT OR REPLACE INTO reached VALUES (?, ?, ?, ?, ?)", (partition, until, *place, anchor)
            )

    def _overlay(self, partition: int) -> _Overlay:
        found = self._overlays.get(partition)
        if found is None:
            stored = self._stored(partition)
            found = self._overlays[partition] = _Overlay(stored.until, stored)
        return found

    def _stored(self, partition: int) -> Indexed:
        query = "SELECT until, segment, at, anchor FROM reached WHERE partition = ?"
        row = self._db.execute(query, (partition,)).fetchone()
        return _NOTHING if row is None else Indexed(row[0], Place(row[1], row[2]), row[3])

    def _count(self, tag: bytes, partition: int, after: int) -> int:
        """Return how many postings a tag has, of a few: enough to see which one is the rarest."""
        overlay = self._overlay(partition)
        later = len(overlay.postings.get(tag, ()))
        if later >= _SAMPLE or overlay.since <= after:
            return later
        query = "SELECT 1 FROM postings WHERE tag = ? AND partition = ? AND offset >= ? LIMIT ?"
        return later + len(self._db.execute(query, (tag, partition, after, _SAMPLE)).fetchall())

    def _postings(self, tag: bytes, partition: int, after: int, before: int) -> list[int]:
        overlay = self._overlay(partition)
        stored: list[int] = []
        if overlay.since > after:
            query = (
                "SELECT offset FROM postings WHERE tag = ? AND partition = ? AND offset >= ? AND offset < ?"
            )
            end = min(before, overlay.since)  # another process may have stored more since
            rows = self._db.execute(f"{query} ORDER BY offset", (tag, partition, after, end))
            stored = [row[0] for row in rows]
        later = overlay.postings.get(tag, [])
        return stored + later[bisect_left(later, after) : bisect_left(later, before)]

    def _has(self, tag: bytes, partition: int, offset: int) -> bool:
        overlay = self._overlay(partition)
        if offset >= overlay.since:
            later = overlay.postings.get(tag, ())
            at = bisect_left(later, offset)
            return at < len(later) and later[at] == offset
        query = "SELECT 1 FROM postings WHERE tag = ? AND partition = ? AND offset = ?"
        return self._db.execute(query, (tag, partition, offset)).fetchone() is not None


def _opened(path: Path | None) -> sqlite3.Connection:
    """Open an index; one that SQLite cannot read is removed, and begun anew."""
    try:
        return _connected(path)
    except sqlite3.DatabaseError as error:
        if path is None or not discard_damaged(path, error):
            raise
        return _connected(path)


def _connected(path: Path | None) -> sqlite3.Connection:
    """Connect to a file, or to a private one that SQLite removes."""
    db = sqlite3.connect(
        "" if path is None else path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False
    )
    try:
        if path is not None:
            write_ahead(db, _BUSY_SECONDS)
        db.execute("PRAGMA synchronous=NORMAL")
        db.executescript(_TABLES)
        db.execute("SELECT 1 FROM postings LIMIT 1")
    except BaseException:
        db.close()
        raise
    return db
