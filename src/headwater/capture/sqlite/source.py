"""SQLite as a source of changes: the embedded default, which needs no server and no help of the application.

Triggers write into an outbox (``triggers.py``, ``outbox.py``), this reads it. SQLite tells neither the
number nor the end of a transaction, but who reads sees whole ones only: the changes up to the newest one
that was there at one moment are given as one transaction, whose time is that of its last change; it may be
several of the application's. Changes are numbered within it from where it begins, so that they have the same
numbers when they are delivered again from there.

A change of the schema is noticed at the next reading. Columns that were added or renamed are delivered from
then on, again for the rows that were written meanwhile. A table that was made anew, as migrations of SQLite
do it, has lost its triggers with the old one: it is delivered as a truncation and all of its rows.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np
import pyarrow as pa

from headwater.capture.change import Delivery, SnapshotChunk, SourceTable, Transactions
from headwater.capture.source import CaptureSource
from headwater.capture.sqlite import catalog, decoding
from headwater.capture.sqlite.chunks import read_chunk
from headwater.capture.sqlite.connection import DatabaseBusy, SqliteConnection
from headwater.capture.sqlite.deleting import delete_rows
from headwater.capture.sqlite.installation import Installation
from headwater.capture.sqlite.object_names import ObjectNames, quoted
from headwater.capture.sqlite.outbox import Outbox
from headwater.capture.sqlite.position import OutboxPosition
from headwater.errors import SourceRefused, SourceUnavailable, UsageError

_POLL_SECONDS = 0.01
"""How often it is looked whether anyone has written, which costs some microseconds."""
_PATIENCE = 0.5
"""Seconds to wait with deleting for the application: reading on is more urgent."""


class SqliteSource(CaptureSource):
    """The changes of one SQLite file; ``name`` is that of the capture, of which a file may have several."""

    def __init__(self, path: str | Path, name: str, *, busy_seconds: float = 60.0):
        self._names = ObjectNames(name)
        self._db = SqliteConnection(Path(path), busy_seconds)
        self.title = self._db.title
        self._outbox = Outbox(self._db, self._names)
        self._installation = Installation(self._db, self._names, self._outbox)
        self._captured: tuple[str, ...] = ()
        self._sources: dict[int, SourceTable] = {}
        self._at: OutboxPosition | None = None
        self._goal: OutboxPosition | None = None
        """The end of the transaction at hand."""
        self._start = 0
        """Where that began."""
        self._checked = 0
        """The newest change that was made while the triggers were right."""
        self._first_end: OutboxPosition | None = None
        """Where the first transaction has ended before a restart, if that was told."""
        self._schema_version = self._data_version = -1

    def tables(self) -> list[SourceTable]:
        """Return every table, by name, also those that cannot be captured: they have no key."""
        with self._db.snapshot():
            return [catalog.source_table(self._db, name) for name in catalog.table_names(self._db)]

    def begin(self, tables: Sequence[str], position: str | None) -> str:
        """Make the triggers and the outbox, and return from where on changes are delivered.

        Without a position both are made anew: changes that another capture of the name has left are gone.
        """
        with self._db.transaction():
            if position is None:
                self._outbox.make()
                begun = self._outbox.end()
            else:
                begun = OutboxPosition.parse(position)
                self._outbox.check(begun)
            self._installation.fit(tables, begun.id)
        self._captured = tuple(tables)
        self._at = self._goal = begun
        self._checked = begun.id
        self._schema_version = self._data_version = -1
        return str(begun)

    def read(self, timeout: float) -> Delivery:
        """Return what comes next, or an empty delivery when nothing came within some seconds."""
        until = time.monotonic() + timeout
        while self._reading() == self._goal and not self._look():
            left = until - time.monotonic()
            if left <= 0:
                return Delivery()
            time.sleep(min(left, _POLL_SECONDS))
        return self._deliver()

    def end_first_at(self, position: str) -> None:
        """Let the first transaction end at a position, however many changes there are by now."""
        self._first_end = OutboxPosition.parse(position)

    def confirm(self, position: str) -> None:
        """Remove from the outbox what is before a position, unless others are writing: then later."""
        with suppress(DatabaseBusy):
            self._outbox.trim(OutboxPosition.parse(position))

    def passed(self, position: str, other: str) -> bool:
        """Tell whether a position is the other one or behind it."""
        return OutboxPosition.parse(position).id >= OutboxPosition.parse(other).id

    def end(self) -> str:
        """Return the position behind everything that is committed now."""
        with self._db.snapshot():
            return str(self._outbox.end())

    def chunk(self, table: str, after: tuple[object, ...] | None, limit: int) -> SnapshotChunk:
        """Return rows of a table behind a key, in SQLite's order of keys, as they are at one moment."""
        return read_chunk(self._db, self._outbox, table, after, limit)

    def count(self, table: str) -> int:
        """Return how many rows a table has, by counting them: SQLite keeps no such number."""
        return int(self._db.value(f"SELECT count(*) FROM {quoted(table)}"))  # noqa: S608  # a name, quoted

    def delete_rows(self, table: str, keys: pa.RecordBatch) -> bool:
        """Delete the rows of some keys, unless others are writing."""
        try:
            with self._db.transaction(_PATIENCE):
                delete_rows(self._db, table, keys)
        except DatabaseBusy:
            return False
        self._data_version = -1  # which tells of other connections alone, and ours has made changes now
        return True

    def retained(self) -> int:
        """Return about how many bytes the outbox takes: its rows times the size of the newest ones."""
        with self._db.snapshot():
            return self._outbox.retained()

    def drop(self) -> None:
        """Remove the triggers and the outbox."""
        with self._db.transaction():
            self._outbox.drop()

    def close(self) -> None:
        """Close the file; its triggers stay at work."""
        self._db.close()

    def _reading(self) -> OutboxPosition:
        if self._at is None:
            raise UsageError("a source delivers changes when it has begun", hint="call begin(…) first")
        return self._at

    def _look(self) -> bool:
        """Find out how far can be read now, and tell whether that is any further."""
        self._db.check_file()
        version = self._db.value("PRAGMA data_version")
        if version == self._data_version:
            return False
        self._goal, first, self._first_end = self._newest(), self._first_end, None
        self._start, self._data_version = self._reading().id, version
        if first is not None and first.id < self._goal.id:
            self._goal, self._data_version = first, -1  # the others come next
        return self._goal != self._at

    def _newest(self) -> OutboxPosition:
        with self._db.snapshot():
            same = self._db.value("PRAGMA schema_version") == self._schema_version
            if same and not self._installation.has_untold():
                newest = self._outbox.end()
                self._checked = newest.id
                return newest
        with self._db.transaction():
            return self._refitted()

    def _refitted(self) -> OutboxPosition:
        """Bring the triggers in step with a schema that was changed, and tell what they could not."""
        self._outbox.check(self._reading())  # a drop changes the schema, too
        missing = set(self._captured) - set(catalog.table_names(self._db))
        if missing:
            raise SourceUnavailable(
                f'{self.title} no longer has table "{min(missing)}"',
                detail="it was dropped or renamed",
                hint="the capture goes on when it is there again; to leave it out, take it off the capture",
            )
        self._installation.fit(self._captured, self._checked)
        self._schema_version = self._db.value("PRAGMA schema_version")
        found = self._outbox.sources()
        self._sources = {each.number: each.table for each in found if each.table.name in self._captured}
        newest = self._outbox.end()
        self._checked = newest.id
        return newest

    def _deliver(self) -> Delivery:
        at, goal = self._reading(), self._goal
        assert goal is not None  # since it has begun
        width = 2 * max((len(each.columns) for each in self._sources.values()), default=0)
        rows = self._outbox.read(at.id, goal.id, width)
        if not rows or rows[0][0] != at.id + 1:
            raise SourceRefused(
                f"changes in {self.title} were removed before they were read",
                hint=f'is another capture named "{self._names.capture}" at work? give each its own name',
            )
        once = Transactions((str(goal.id),), (str(goal),), np.array([goal.at * 1000], np.int64))
        changes = decoding.changes(rows, self._sources, once, self._start)
        last = OutboxPosition(goal.outbox, rows[-1][0], rows[-1][3])
        self._at = last
        return Delivery(changes, str(goal) if last == goal else None)
