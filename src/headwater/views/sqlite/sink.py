"""The sink of a view: one commit is one SQLite transaction.

Invariant: rows, changes, batch number, positions and clock of a batch are stored together or not
at all, by the runner with the newest epoch only.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import Any

from headwater.errors import UsageError
from headwater.sinks import crash
from headwater.sinks.fencing import dropped, taken_over
from headwater.sinks.sink import Batch, NumberedSink
from headwater.stores.sqlite import values
from headwater.stores.sqlite.connection import Writer
from headwater.values.fitting import Fitted
from headwater.values.keyed import settle
from headwater.views.sqlite import catalog, tables
from headwater.views.sqlite.catalog import StoredVersion

_CHUNK = 50_000
"""Rows staged at a time: what is staged lies in memory."""


class SqliteSink(NumberedSink):
    """Writes one version of a view.

    Of several rows with one key the last one counts; a row whose ``_deleted`` is true removes its
    key. Every row that this changes is noted in the view's changes, those of one batch in the order
    of their keys; at least the last ``feed`` of them are kept. A commit is durable when it returns.

    Made by ``ViewStore.sink``.
    """

    def __init__(self, writer: Writer, entry: StoredVersion, feed: int):
        self.view, self.version = entry.name, entry.version
        self._writer, self._id, self._feed = writer, entry.id, feed
        self._tables = entry.tables
        self._epoch: int | None = None

    def begin(self) -> int:
        """Take over from any other runner of this version; return its last batch number, or -1."""
        with self._writer.transaction() as db:
            entry = self._entry(db)
            self._tables.check(db, entry.filled)
            self._tables.prepare(db)
            db.execute("UPDATE views SET epoch = epoch + 1 WHERE id = ?", (self._id,))
        crash.point("view: begun")
        self._epoch, self._last = entry.epoch + 1, entry.batch
        return entry.batch

    def commit(self, batch: Batch) -> bool:
        """Make a batch visible, whole; return False if it was there before."""
        if self._epoch is None:
            raise UsageError(f'sink of view "{self.view}" has not begun', hint="call begin() first")
        settled = settle(batch.rows, self._tables.keyed)
        with self._writer.transaction() as db:
            entry = self._entry(db)
            if entry.epoch != self._epoch:
                raise taken_over(f'view "{self.view}"')
            if batch.number <= entry.batch:
                return False
            self._store(db, settled, batch, entry.filled)
            crash.point("view: before commit")
        self._last = batch.number
        crash.point("view: committed")
        return True

    def close(self) -> None:
        """Nothing to release: the store holds the connection."""

    def _store(self, db: sqlite3.Connection, settled: Fitted, batch: Batch, filled: bool) -> None:
        for chunk in _staged(settled, self._tables):
            db.executemany(self._tables.put, chunk)
            crash.point("view: staged")
            db.execute(self._tables.save_changes, (batch.number,))
            crash.point("view: changes noted")
            db.execute(self._tables.upsert)
            if settled.deleted.any():
                db.execute(self._tables.delete)
            db.execute(self._tables.clear)
            # Not once behind the last chunk: what is pruned at once need not reach the disk.
            db.execute(self._tables.prune, (tables.last_change(db, self._tables) - self._feed,))
        crash.point("view: rows stored")
        if len(settled):
            filled = not settled.deleted.all() or self._tables.any(db)
        positions = "\n".join(map(str, batch.positions))
        db.execute(
            "UPDATE views SET batch = ?, positions = ?, clock = ?, filled = ? WHERE id = ?",
            (batch.number, positions, batch.watermark, filled, self._id),
        )

    def _entry(self, db: sqlite3.Connection) -> StoredVersion:
        for entry in catalog.of(db, self.view):
            if entry.id == self._id:
                return entry
        raise dropped(f'view "{self.view}"', self.version)


def _staged(settled: Fitted, of: tables.Tables) -> Iterator[Iterator[tuple[Any, ...]]]:
    """Yield the rows as SQLite takes them, a chunk at a time."""
    for at in range(0, len(settled), _CHUNK):
        part = settled.rows.slice(at, _CHUNK)
        columns = [values.encode(part.column(field.name), field) for field in of.fields]
        yield zip(*columns, settled.deleted[at : at + _CHUNK].tolist(), strict=True)
