"""Reading a view from a SQLite file.

A commit becomes visible through memory that SQLite's connections share, of which no file event
tells, so waiting for one is a short sleep that grows to 20 ms, and a look at a number (3 µs) that
differs when another connection has committed. Invariant: what belongs to one answer is read in one
transaction.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

from headwater.stores.sqlite import values
from headwater.stores.sqlite.connection import read_transaction
from headwater.stores.sqlite.json_text import row_text
from headwater.stores.sqlite.values import encode_one
from headwater.values.keyed import KeyedSchema
from headwater.views.changes import CHUNK, Change, Row, change, check_retained, resume_after
from headwater.views.query import RowComparison, ViewQuery
from headwater.views.reading import Reading, StoredRow
from headwater.views.snapshot import ViewSnapshot
from headwater.views.sqlite import catalog
from headwater.views.sqlite.catalog import StoredVersion
from headwater.views.sqlite.tables import Tables, last_change, quoted

_ROWS = 8192
_SHORTEST, _LONGEST = 0.001, 0.02


class SqliteReading(Reading):
    """A view on a connection to a SQLite file."""

    def __init__(self, db: sqlite3.Connection, name: str, version: int | None):
        self._db, self._of = db, (name, version)

    def entry(self) -> StoredVersion:
        """Return the version that is read, and how far it has got."""
        with read_transaction(self._db):
            return catalog.find(self._db, *self._of)

    def batches(self, query: ViewQuery) -> Iterator[pa.RecordBatch]:
        """Yield the rows that are asked for."""
        with read_transaction(self._db):
            yield from self._rows(query, catalog.find(self._db, *self._of).tables)

    @contextmanager
    def snapshot(self, query: ViewQuery) -> Iterator[ViewSnapshot]:
        """Return the rows that are asked for with the number of the newest change they include."""
        with read_transaction(self._db):
            entry = catalog.find(self._db, *self._of)
            rows = self._rows(query, entry.tables)
            last = last_change(self._db, entry.tables)
            yield ViewSnapshot(last, entry.version, entry.keyed.schema, rows)

    def count(self) -> int:
        """Return the number of rows."""
        with read_transaction(self._db):
            tables = catalog.find(self._db, *self._of).tables
            return int(self._db.execute(f"SELECT count(*) FROM {tables.rows}").fetchone()[0])  # noqa: S608

    def sequence(self) -> int:
        """Return the number of the newest change."""
        with read_transaction(self._db):
            return last_change(self._db, catalog.find(self._db, *self._of).tables)

    def state(self) -> tuple[StoredVersion, int]:
        """Return the version that is read, and the number of its newest change."""
        with read_transaction(self._db):
            entry = catalog.find(self._db, *self._of)
            return entry, last_change(self._db, entry.tables)

    def stored_row(self, key_of: Callable[[KeyedSchema], tuple[Any, ...]]) -> StoredRow:
        """Return the row of a key as it is stored, all of one moment; ``key_of`` gives the key."""
        with read_transaction(self._db):
            entry = catalog.find(self._db, *self._of)
            keyed, tables = entry.keyed, entry.tables
            key = zip(key_of(keyed), keyed.key_fields, strict=True)
            stored = [encode_one(value, field, keyed.what) for value, field in key]
            row = self._db.execute(tables.select_one, stored).fetchone()
            return StoredRow(entry, last_change(self._db, tables), row, row_text)

    def chunk(self, since: int) -> Sequence[Change]:
        """Return the next changes after a number."""
        with read_transaction(self._db):
            entry = catalog.find(self._db, *self._of)
            since = resume_after(entry, since)
            self._check_retained(entry, since)
            columns = ", ".join(entry.tables.change_columns)
            rows = self._db.execute(
                f"SELECT number, batch, kind, {columns} FROM {entry.tables.changes} "  # noqa: S608
                "WHERE number > ? ORDER BY number LIMIT ?",
                (since, CHUNK),
            ).fetchall()
        return _decoded(rows, entry.tables) if rows else ()

    def commits(self, timeout: float | None) -> Iterator[None]:
        """Yield at once, then whenever another connection has committed, until the time is over."""
        deadline = float("inf") if timeout is None else time.monotonic() + timeout
        seen, pause = None, _SHORTEST
        while True:
            # Before the look, so that a commit during it leads to another.
            version = self._db.execute("PRAGMA data_version").fetchone()
            if version != seen:
                seen, pause = version, _SHORTEST
                yield
            elif time.monotonic() >= deadline:
                return
            else:
                time.sleep(max(0.0, min(pause, deadline - time.monotonic())))
                pause = min(pause * 2, _LONGEST)

    def _rows(self, query: ViewQuery, tables: Tables) -> Iterator[pa.RecordBatch]:
        cursor = self._db.execute(*_select(query, tables))
        while rows := cursor.fetchmany(_ROWS):
            yield _batch(rows, tables.keyed.schema)

    def _check_retained(self, entry: StoredVersion, since: int) -> None:
        last = last_change(self._db, entry.tables)
        oldest = self._db.execute(f"SELECT min(number) FROM {entry.tables.changes}").fetchone()[0]  # noqa: S608
        check_retained(entry.name, since, last + 1 if oldest is None else int(oldest), last)


def _select(query: ViewQuery, tables: Tables) -> tuple[str, list[Any]]:
    """Return the statement and its parameters; its columns are in the schema's order."""
    keyed = tables.keyed
    conditions = query.conditions(keyed)
    columns = ", ".join(quoted(name) for name in keyed.schema.names)
    where = " AND ".join(f"{quoted(field.name)} {sign} ?" for field, sign, _ in conditions) or "true"
    direction = " DESC" if query.descending else ""
    order = ", ".join(quoted(name) + direction for name in query.order_columns(keyed))
    values = [encode_one(value, field, keyed.what) for field, _, value in conditions]
    following = query.following(keyed)
    if following:
        where += " AND (" + " OR ".join(" AND ".join(map(_compared, each)) for each in following) + ")"
    for comparison in (each for alternative in following for each in alternative):
        compared = zip(comparison.fields, comparison.values, strict=False)
        values += [encode_one(value, field, keyed.what) for field, value in compared]
    return (
        f"SELECT {columns} FROM {tables.rows} WHERE {where} ORDER BY {order} LIMIT ?",  # noqa: S608
        [*values, -1 if query.limit is None else query.limit],
    )


def _compared(comparison: RowComparison) -> str:
    names = ", ".join(quoted(field.name) for field in comparison.fields)
    marks = ", ".join("?" for _ in comparison.values)
    return f"({names}) {comparison.sign} ({marks})" if marks else f"{names} {comparison.sign}"


def _batch(rows: list[tuple[Any, ...]], schema: pa.Schema) -> pa.RecordBatch:
    columns = zip(*rows, strict=True)
    arrays = [values.decode(column, field) for column, field in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _decoded(rows: Sequence[Sequence[Any]], tables: Tables) -> list[Change]:
    numbers, batches, kinds, *columns = zip(*rows, strict=True)
    width = len(tables.keyed.key)
    end = len(tables.fields)  # where the old values end and the new ones begin
    keys = columns[:width]
    old, new = _rows(columns[:end], tables), _rows(keys + columns[end:], tables)
    return [
        change(number, kind, batch, before, after, tables.keyed.key)
        for number, kind, batch, before, after in zip(numbers, kinds, batches, old, new, strict=True)
    ]


def _rows(columns: Sequence[Sequence[Any]], tables: Tables) -> list[Row]:
    """Return rows as mappings, their columns in the schema's order."""
    by_name = dict(zip((field.name for field in tables.fields), columns, strict=True))
    schema = pa.schema([field.with_nullable(True) for field in tables.keyed.schema])
    arrays = [values.decode(by_name[field.name], field) for field in schema]
    listed: list[Row] = pa.RecordBatch.from_arrays(arrays, schema=schema).to_pylist()
    return listed
