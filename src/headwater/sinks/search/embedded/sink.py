"""The sink of an embedded index: one commit is one SQLite transaction.

Invariant: rows, their words, batch number, epoch, positions and clock of a batch are stored together or not
at all, by the runner with the newest epoch only.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from headwater.errors import SchemaError, UsageError
from headwater.sinks import crash
from headwater.sinks.fencing import dropped, taken_over
from headwater.sinks.search.declaration import declare_search
from headwater.sinks.search.embedded import reading
from headwater.sinks.search.embedded.tables import KIND, SearchProgress, SearchTables, file_of, progress
from headwater.sinks.sink import Batch, Contents, NumberedSink
from headwater.stores.sqlite import values
from headwater.stores.sqlite.connection import Writer
from headwater.values.fitting import Fitted
from headwater.values.keyed import settle

_CHUNK = 50_000
"""Rows staged at a time: what is staged lies in memory."""


class SearchSink(NumberedSink):
    """Keeps an index of the rows of a node, by key.

    Of several rows with one key the last one counts; a row whose ``_deleted`` is true removes its key. Words
    are compared without regard to case and accents. A commit is durable, and found by readers, when it
    returns; a batch that comes again changes nothing, and a runner that was replaced is fenced.

    >>> import tempfile
    >>> from headwater.sinks import search
    >>> directory = tempfile.mkdtemp()
    >>> with SearchSink(directory, "id BIGINT, name STRING", "id", ["name"]) as sink:
    ...     _ = sink.begin()
    ...     _ = sink.commit(Batch(0, pa.table({"id": [1, 2], "name": ["Ada Lovelace", "Grace Hopper"]})))
    >>> [row["id"] for row in search.open(directory).search("lovelace")]
    [1]
    """

    def __init__(
        self,
        directory: str | os.PathLike[str],
        schema: str | pa.Schema,
        key: str | tuple[str, ...],
        text: str | Sequence[str],
        *,
        version: int = 1,
    ):
        self._directory = Path(directory)
        declared = declare_search(f'search index "{self._directory}"', schema, key, text)
        self._tables = SearchTables(declared, version)
        self._writer: Writer | None = None
        self._epoch: int | None = None

    def begin(self) -> int:
        """Take over from any other runner; return the number of the last batch committed, or -1."""
        if self._writer is None:
            self._writer = Writer(file_of(self._directory), "fsync", KIND)
        with self._writer.transaction() as db:
            reached = progress(db, self._tables.version) or self._create(db)
            self._check(db, reached)
            self._tables.prepare(db)
            db.execute("UPDATE search SET epoch = epoch + 1 WHERE version = ?", (self._tables.version,))
        crash.point("search: begun")
        self._epoch, self._last = reached.epoch + 1, reached.batch
        return reached.batch

    def commit(self, batch: Batch) -> bool:
        """Make a batch visible, whole; return False if it was there before."""
        if self._writer is None or self._epoch is None:
            raise UsageError(f"sink of {self._tables.declared.what} has not begun", hint="call begin() first")
        settled = settle(batch.rows, self._tables.declared)
        with self._writer.transaction() as db:
            if batch.number <= self._current(db).batch:
                return False
            self._store(db, settled, batch)
            crash.point("search: before commit")
        self._last = batch.number
        crash.point("search: committed")
        return True

    def read_back(self) -> Contents:
        """Return the rows of the index."""
        return reading.contents(self._directory, self._tables.version)

    def close(self) -> None:
        """Close the file."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def _create(self, db: sqlite3.Connection) -> SearchProgress:
        published = progress(db)
        if published is not None and published.version > self._tables.version:
            raise dropped(self._tables.declared.what, self._tables.version)
        self._tables.create(db)
        return self._tables.new

    def _check(self, db: sqlite3.Connection, reached: SearchProgress) -> None:
        new = self._tables.new
        if (reached.columns, reached.key, reached.text) != (new.columns, new.key, new.text):
            held = reached.schema(self._tables.declared.what)
            key, text = ", ".join(held.key), ", ".join(held.text)
            raise SchemaError(
                f"{self._tables.declared.what} holds other columns",
                detail=f"it has `{reached.columns}` by {key}, searched: {text}",
                hint="write to another directory",
            )
        self._tables.check(db, reached.filled)

    def _current(self, db: sqlite3.Connection) -> SearchProgress:
        reached = progress(db, self._tables.version)
        if reached is None:
            raise dropped(self._tables.declared.what, self._tables.version)
        if reached.epoch != self._epoch:
            raise taken_over(self._tables.declared.what)
        return reached

    def _store(self, db: sqlite3.Connection, settled: Fitted, batch: Batch) -> None:
        for chunk in _staged(settled, self._tables):
            db.executemany(self._tables.put, chunk)
            self._apply(db)
        crash.point("search: rows stored")
        db.execute(
            "UPDATE search SET batch = ?, positions = ?, clock = ?, filled = ? WHERE version = ?",
            (
                batch.number,
                "\n".join(map(str, batch.positions)),
                batch.watermark,
                self._tables.any(db),
                self._tables.version,
            ),
        )

    def _apply(self, db: sqlite3.Connection) -> None:
        db.execute(self._tables.skip_same)
        db.execute(self._tables.forget_words)
        crash.point("search: words forgotten")
        db.execute(self._tables.upsert)
        db.execute(self._tables.delete)
        db.execute(self._tables.add_words)
        db.execute("DELETE FROM stage")


def _staged(settled: Fitted, of: SearchTables) -> Iterator[Iterator[tuple[Any, ...]]]:
    """Yield the rows as SQLite takes them, a chunk at a time."""
    for at in range(0, len(settled), _CHUNK):
        part = settled.rows.slice(at, _CHUNK)
        columns = [values.encode(part.column(field.name), field) for field in of.declared.schema]
        yield zip(*columns, settled.deleted[at : at + _CHUNK].tolist(), strict=True)
