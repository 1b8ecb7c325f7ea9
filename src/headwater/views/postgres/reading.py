"""Reading a table that is kept in PostgreSQL as a view.

Waiting for a commit is by ``LISTEN``, so it is seen at once. A rebuild may take a view's name while
it is read: which version it was is looked up before and after. Invariant: one answer is of one
statement, and of the version whose columns it is read with.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import psycopg
import pyarrow as pa
from psycopg.sql import SQL, Composed, Identifier

from headwater.errors import UsageError
from headwater.stores.postgres import columns
from headwater.stores.postgres.connection import Connection
from headwater.values.one_value import fitted
from headwater.views.changes import CHUNK, Change, change, check_retained, resume_after
from headwater.views.postgres import catalog, tables
from headwater.views.postgres.statements import Bound
from headwater.views.postgres.table_version import TableVersion
from headwater.views.query import RowComparison, ViewQuery
from headwater.views.reading import Reading
from headwater.views.snapshot import ViewSnapshot

_ROWS = 8192
_POLL_SECONDS = 5.0
"""How often to look although no notification has come."""


class Switched(psycopg.OperationalError):
    """Another version has taken the name while it was read: what was done is done again."""

    sqlstate = "40001"  # as of a transaction that another one was in the way of


class PostgresReading(Reading):
    """A view on a connection to PostgreSQL."""

    def __init__(self, connection: Connection, name: str, version: int | None):
        self._connection, self._of = connection, (name, version)

    def entry(self) -> TableVersion:
        """Return the version that is read, and how far it has got."""
        return self._connection.run(lambda db: catalog.find(db, *self._of))

    def batches(self, query: ViewQuery) -> Iterator[pa.RecordBatch]:
        """Yield the rows that are asked for."""
        with self._connection.held(partial(self._open_cursor, query)) as (cursor, entry), cursor:
            yield from _fetched(cursor, entry.keyed.schema)

    @contextmanager
    def snapshot(self, query: ViewQuery) -> Iterator[ViewSnapshot]:
        """Return the rows that are asked for with the number of the newest change they include."""
        with self._connection.held(partial(self._open_snapshot, query)) as (cursor, entry), cursor:
            schema = entry.keyed.schema
            yield ViewSnapshot(entry.changes, entry.version, schema, _fetched(cursor, schema))

    def count(self) -> int:
        """Return the number of rows."""
        return self._connection.run(self._count)

    def sequence(self) -> int:
        """Return the number of the newest change."""
        return self.entry().changes

    def chunk(self, since: int) -> Sequence[Change]:
        """Return the next changes after a number."""
        return self._connection.run(partial(self._changes, since=since))

    def commits(self, timeout: float | None) -> Iterator[None]:
        """Yield at once, then after each commit of a sink, until the time is over."""
        deadline = float("inf") if timeout is None else time.monotonic() + timeout
        try:
            while True:
                self._connection.listen()  # before the look, and again on a new connection
                yield
                left = deadline - time.monotonic()
                if left <= 0:
                    return
                self._connection.wait(min(left, _POLL_SECONDS))
        finally:
            self._connection.unlisten()

    @contextmanager
    def _checked_version(self, db: psycopg.Connection) -> Iterator[TableVersion]:
        """Yield the version that is read; what is read of it counts only if it still is at the end."""
        entry = catalog.find(db, *self._of)
        try:
            yield entry
        except (psycopg.errors.UndefinedTable, psycopg.errors.UndefinedColumn) as error:
            raise Switched(str(error)) from None
        now = catalog.find(db, *self._of)
        if (now.id, now.table) != (entry.id, entry.table):
            raise Switched(f'view "{entry.name}" has been rebuilt')

    def _open_cursor(
        self, query: ViewQuery, db: psycopg.Connection
    ) -> tuple[psycopg.ServerCursor, TableVersion]:
        cursor = db.cursor("headwater_scan")
        try:
            with self._checked_version(db) as entry:
                cursor.execute(*_select(query, entry))
        except BaseException:
            cursor.close()
            raise
        return cursor, entry

    def _open_snapshot(
        self, query: ViewQuery, db: psycopg.Connection
    ) -> tuple[psycopg.ServerCursor, TableVersion]:
        """Open a cursor at a moment of which the newest change is known: the same before it and after."""
        while True:
            cursor, entry = self._open_cursor(query, db)
            if catalog.find(db, *self._of).changes == entry.changes:
                return cursor, entry
            cursor.close()

    def _count(self, db: psycopg.Connection) -> int:
        with self._checked_version(db) as entry:
            row = db.execute(SQL("SELECT count(*) FROM {}").format(entry.sql.target)).fetchone()
        assert row is not None, "a count has a row"
        return int(row[0])

    def _changes(self, db: psycopg.Connection, since: int) -> list[Change]:
        with self._checked_version(db) as entry:
            since, has_changes = resume_after(entry, since), tables.has_changes(db, entry)
            rows = db.execute(_select_changes(entry), (since, CHUNK)).fetchall() if has_changes else []
        if not has_changes:
            raise UsageError(
                f'table "{entry.name}" has no changes saved',
                hint="give its sink a feed, the number of changes to keep",
            )
        # Numbers have no gaps: the first one tells whether any before it are gone; without one, all are.
        first, last = (rows[0][0], rows[-1][0]) if rows else (entry.changes + 1, entry.changes)
        check_retained(entry.name, since, first, last)
        return _decoded(rows, entry)


def _fetched(cursor: psycopg.ServerCursor, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    while rows := cursor.fetchmany(_ROWS):
        yield columns.to_batch(rows, schema)


def _select(query: ViewQuery, entry: TableVersion) -> tuple[Composed, list[Any]]:
    keyed = entry.keyed
    conditions = query.conditions(keyed)
    where = [SQL("{} {} %s").format(Bound(Identifier(f.name)), SQL(sign)) for f, sign, _ in conditions]
    order = [
        Bound(Identifier(name)) + _direction(query, name in keyed.key) for name in query.order_columns(keyed)
    ]
    values = [fitted(value, field, keyed.what)[0].as_py() for field, _, value in conditions]
    following = query.following(keyed)
    if following:
        alternatives = [SQL(" AND ").join(map(_compared, each)) for each in following]
        where.append(SQL("({})").format(SQL(" OR ").join(alternatives)))
    for comparison in (each for alternative in following for each in alternative):
        compared = zip(comparison.fields, comparison.values, strict=False)
        values += [fitted(value, field, keyed.what)[0].as_py() for field, value in compared]
    return (
        SQL("SELECT {} FROM {} WHERE {} ORDER BY {} LIMIT %s").format(
            SQL(", ").join(map(Bound, entry.sql.names)),
            Bound(entry.sql.target),
            SQL(" AND ").join(where or [SQL("true").format()]),
            SQL(", ").join(order),
        ),
        [*values, query.limit],
    )


def _compared(comparison: RowComparison) -> Composed:
    names = SQL(", ").join(Bound(Identifier(field.name)) for field in comparison.fields)
    if not comparison.values:
        return SQL("{} {}").format(names, SQL(comparison.sign))
    marks = SQL(", ").join(SQL("%s") for _ in comparison.values)
    return SQL("({}) {} ({})").format(names, SQL(comparison.sign), marks)


def _direction(query: ViewQuery, strict: bool) -> SQL:
    """Return in which direction a column is ordered: a null is less than anything, and no key has one."""
    nulls = "" if strict else " NULLS LAST" if query.descending else " NULLS FIRST"
    return SQL(f"{' DESC' if query.descending else ''}{nulls}")


def _select_changes(entry: TableVersion) -> Composed:
    names = [Bound(name) for name in entry.sql.names]
    parts = [SQL("({}).{}").format(SQL(side), name) for side in ("old", "new") for name in names]
    return SQL("SELECT number, kind, batch, {} FROM {} WHERE number > %s ORDER BY number LIMIT %s").format(
        SQL(", ").join(parts), Bound(entry.sql.changes)
    )


def _decoded(rows: list[tuple[Any, ...]], entry: TableVersion) -> list[Change]:
    width = len(entry.keyed.schema)
    schema = pa.schema([field.with_nullable(True) for field in entry.keyed.schema])
    old = columns.to_batch([row[3 : 3 + width] for row in rows], schema).to_pylist()
    new = columns.to_batch([row[3 + width :] for row in rows], schema).to_pylist()
    return [
        change(number, kind, batch, before, after, entry.key)
        for (number, kind, batch, *_), before, after in zip(rows, old, new, strict=True)
    ]
