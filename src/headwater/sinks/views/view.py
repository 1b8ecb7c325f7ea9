"""Reading views: by key, by range, in any order, as they change, and not before one's own writes.

Any number of processes may read while the runner commits. Invariant: what one read returns is the
view as it was after one batch, never in the middle of one.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from headwater.closing import Closing
from headwater.log.position import Position
from headwater.sinks.keyed import key_values
from headwater.sinks.views import catalog, feed, values
from headwater.sinks.views.catalog import Entry
from headwater.sinks.views.connection import Readers
from headwater.sinks.views.feed import Change
from headwater.sinks.views.query import Query
from headwater.sinks.views.wait import wait

TIMEOUT = 30.0
_ROWS = 8192


class View:
    """One view, for reading.

    Every read may be told to ``wait_for`` a position of one of the view's inputs, such as a
    producer's ``flush`` returns: it waits until the view includes everything before it, or raises
    ``Behind`` after ``timeout`` seconds. When a rebuild is published, the next read is of the new
    version.
    """

    def __init__(self, readers: Readers, name: str, version: int | None = None):
        self.name = name
        self._readers = readers
        self._of = (name, version)
        self._entry()  # says so if there is none

    @property
    def schema(self) -> pa.Schema:
        """The view's columns."""
        return self._entry().tables.keyed.schema

    @property
    def key(self) -> tuple[str, ...]:
        """The columns of the view's key."""
        return self._entry().key

    @property
    def version(self) -> int:
        """The version that is read now."""
        return self._entry().version

    def get(
        self, key: Any, *, wait_for: Position | None = None, timeout: float = TIMEOUT
    ) -> dict[str, Any] | None:
        """Return the row of a key, or None.

        A key of several columns is a tuple in their order, or a mapping.
        """
        self._wait(wait_for, timeout)
        with self._readers.snapshot() as db:
            tables = catalog.find(db, *self._of).tables
            found = db.execute(*Query(key_values(key, tables.keyed)).sql(tables)).fetchall()
        return _batch(found, tables.keyed.schema).to_pylist()[0] if found else None

    def scan(
        self,
        prefix: Any = None,
        start: Any = None,
        end: Any = None,
        order: str | None = None,
        descending: bool = False,
        limit: int | None = None,
        *,
        wait_for: Position | None = None,
        timeout: float = TIMEOUT,
    ) -> Scan:
        """Return the view's rows, or some of them, by key or in the order of a column.

        ``prefix`` is a value, or a tuple of values, of the leading columns of the key; ``start``
        (included) and ``end`` (left out) bound the column after those. Nulls come first, and last if
        ``descending``.
        """
        self._wait(wait_for, timeout)
        leading = prefix if isinstance(prefix, tuple) else () if prefix is None else (prefix,)
        query = Query(leading, start, end, order, descending, limit)
        query.sql(self._entry().tables)  # what cannot be asked is told now, not at the first row
        return Scan(self._readers, self._of, query)

    def changes(
        self,
        since: int = 0,
        follow: bool = False,
        timeout: float | None = None,
        *,
        wait_for: Position | None = None,
    ) -> Iterator[Change]:
        """Yield the changes after the one with the number ``since``; 0 is before the first.

        Changes of one batch come in the order of their keys. With ``follow`` the iterator waits for
        more, and ends when there has been none for ``timeout`` seconds (None: never). Raises
        ``OffsetLost`` if changes after ``since`` are no longer kept, or the view has been rebuilt.
        """
        self._wait(wait_for, TIMEOUT if timeout is None else timeout)
        return feed.changes(self._readers, self._of, since, follow, timeout)

    def sequence(self) -> int:
        """Return the number of the newest change."""
        with self._readers.snapshot() as db:
            return feed.sequence(db, catalog.find(db, *self._of))

    def position(self) -> tuple[Position, ...]:
        """Return how far each input is included in the view."""
        return self._entry().positions

    def batch(self) -> int:
        """Return the number of the last batch that is in the view, or -1."""
        return self._entry().batch

    def clock(self) -> int | None:
        """Return the view's clock, in microseconds since 1970; None where it has none."""
        return self._entry().clock

    def count(self, *, wait_for: Position | None = None, timeout: float = TIMEOUT) -> int:
        """Return the number of rows."""
        self._wait(wait_for, timeout)
        with self._readers.snapshot() as db:
            tables = catalog.find(db, *self._of).tables
            return int(db.execute(f"SELECT count(*) FROM {tables.rows}").fetchone()[0])  # noqa: S608

    def _entry(self) -> Entry:
        with self._readers.snapshot() as db:
            return catalog.find(db, *self._of)

    def _wait(self, position: Position | None, timeout: float) -> None:
        if position is not None:
            wait(self._readers, *self._of, position, timeout)


class Scan:
    """The rows that a scan finds, as Arrow batches, all from one moment.

    The moment is when the iteration begins. An iteration that is not finished keeps SQLite from
    reusing its log, so finish it, or take ``to_table``.
    """

    def __init__(self, readers: Readers, of: tuple[str, int | None], query: Query):
        self._readers, self._of, self._query = readers, of, query

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        with self._readers.snapshot() as db:
            tables = catalog.find(db, *self._of).tables
            cursor = db.execute(*self._query.sql(tables))
            while rows := cursor.fetchmany(_ROWS):
                yield _batch(rows, tables.keyed.schema)

    def to_table(self) -> pa.Table:
        """Return the rows as one Arrow table."""
        batches = list(self)
        if batches:
            return pa.Table.from_batches(batches)
        with self._readers.snapshot() as db:
            schema: pa.Schema = catalog.find(db, *self._of).tables.keyed.schema
        return schema.empty_table()

    def to_pylist(self) -> list[dict[str, Any]]:
        """Return the rows as mappings."""
        return [row for batch in self for row in batch.to_pylist()]


class Views(Closing):
    """The views of a store, for reading.

    >>> import tempfile, pyarrow as pa
    >>> from headwater.sinks import Batch
    >>> from headwater.sinks.views import ViewStore
    >>> path = tempfile.mkdtemp() + "/views.db"
    >>> with ViewStore(path) as store, store.sink("stock", "item STRING, count BIGINT", "item") as sink:
    ...     _ = sink.begin()
    ...     _ = sink.commit(Batch(0, pa.table({"item": ["tea", "rum"], "count": [3, 1]})))
    >>> with open_views(path) as views:
    ...     views["stock"].scan(order="count").to_pylist()
    [{'item': 'rum', 'count': 1}, {'item': 'tea', 'count': 3}]
    """

    def __init__(self, path: str | os.PathLike[str]):
        self._readers = Readers(Path(path))

    def names(self) -> list[str]:
        """Return the names of all views."""
        with self._readers.snapshot() as db:
            return catalog.names(db)

    def view(self, name: str, version: int | None = None) -> View:
        """Return a view: what is published, or one version of it."""
        return View(self._readers, name, version)

    def __getitem__(self, name: str) -> View:
        return self.view(name)

    def close(self) -> None:
        """Close the connections that are not in use."""
        self._readers.close()


def open_views(path: str | os.PathLike[str]) -> Views:
    """Open the views of a pipeline for reading, from any process."""
    return Views(path)


def _batch(rows: list[tuple[Any, ...]], schema: pa.Schema) -> pa.RecordBatch:
    columns = zip(*rows, strict=True)
    arrays = [values.decode(column, field) for column, field in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
