"""The sink of a PostgreSQL table: one commit is one transaction of the server.

Rows are copied into a temporary table of the session and put in their places from there. Invariant:
the rows of a batch, its number, positions and clock are committed together, by the runner with the
newest epoch only; a commit whose answer was lost is recognised by its number.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Literal

import psycopg
import pyarrow as pa

from headwater import durations
from headwater.errors import UsageError
from headwater.sinks import crash
from headwater.sinks.fencing import dropped, taken_over
from headwater.sinks.sink import Batch, Contents, NumberedSink
from headwater.stores import limits
from headwater.stores.postgres import columns
from headwater.stores.postgres.connection import Connection, PostgresReaders
from headwater.values.fitting import Fitted
from headwater.values.keyed import declare, settle
from headwater.views.contents import contents_of
from headwater.views.postgres import catalog, statements, tables
from headwater.views.postgres.reading import PostgresReading
from headwater.views.postgres.statements import Statements
from headwater.views.postgres.table_version import TableVersion
from headwater.views.store import existing
from headwater.views.view_version import check_same

_BEGIN_SECONDS = 5.0
"""How long a beginning waits for the server: its runner has other nodes to mind, and tries again."""


class PostgresSink(NumberedSink):
    """Keeps a PostgreSQL table of a node's results by key.

    The table, which may be named with its schema (``sales.orders``), is made if it is not there; one
    that is there needs the columns and a unique constraint on the key. How far it has got is in the
    table ``headwater_sinks``; with ``feed`` at least that many of the newest changes are kept in a
    table beside it, named with ``_changes`` at its end. ``open_views`` reads all three. When the
    connection breaks, or the server restarts, the commit is repeated for up to ``retry_timeout``.

    >>> sink = PostgresSink("postgresql://shop@db/shop", "stock", "item STRING, count BIGINT", "item")
    >>> sink.begin()                                                          # doctest: +SKIP
    -1
    >>> sink.commit(Batch(0, pa.table({"item": ["tea"], "count": [3]})))      # doctest: +SKIP
    True
    """

    def __init__(
        self,
        dsn: str,
        table: str,
        schema: str | pa.Schema,
        key: str | tuple[str, ...],
        *,
        version: int | None = None,
        feed: int = 0,
        retry_timeout: str | timedelta = "1 minute",
        kind: Literal["table", "view"] = "table",
    ):
        self._keyed = declare(f'{kind} "{table}"', schema, key)
        self._table, self._kind, self._feed = table, kind, feed
        (limits.check_view_name if kind == "view" else limits.check_table_name)(table)
        limits.check_postgres(self._keyed, changes=feed > 0)
        self.version = version
        self._dsn = dsn
        self._connection = Connection(
            dsn, self._keyed.what, durations.interval(retry_timeout).total_seconds()
        )
        self._id: int | None = None
        self._epoch: int | None = None

    def prepare(self) -> None:
        """Make the table, or the version of it, if it is not there."""
        entry = self._connection.run(self._create_or_check, _BEGIN_SECONDS)
        self._id, self.version = entry.id, entry.version

    def begin(self) -> int:
        """Take over from any other runner; return the number of the last batch committed, or -1."""
        if self._id is None:
            self.prepare()
        self._epoch, self._last = self._connection.run(self._take_over, _BEGIN_SECONDS)
        crash.point("postgres: begun")
        return self._last

    def commit(self, batch: Batch) -> bool:
        """Make a batch visible, whole; return False if it was there before."""
        if self._epoch is None:
            raise UsageError(f"sink of {self._keyed.what} has not begun", hint="call begin() first")
        settled = settle(batch.rows, self._keyed)

        def store(db: psycopg.Connection) -> bool:
            return self._store(db, settled, batch)

        done = self._commit_once(self._connection.run, store, batch.number)
        crash.point("postgres: committed")
        return done

    def read_back(self) -> Contents:
        """Return the rows of the table."""
        readers = PostgresReaders(self._dsn, self._keyed.what, _BEGIN_SECONDS)

        @contextmanager
        def lend() -> Iterator[PostgresReading]:
            with readers.lend() as connection:
                yield PostgresReading(connection, self._table, self.version)

        return contents_of(self._table, lend, readers.close)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def _create_or_check(self, db: psycopg.Connection) -> TableVersion:
        catalog.prepare(db)
        entry = existing(catalog.of(db, self._table), self.version, self._keyed.what)
        if entry is not None:
            check_same(entry, self._keyed)
            tables.check(db, entry, self._feed)
            return entry
        exists = tables.exists(db, Statements(self._table, self._keyed).target)
        adopted = self._kind == "table" and self.version in (None, 1) and exists
        entry = catalog.add(db, self._table, self.version or 1, self._keyed, adopted=adopted)
        tables.create(db, entry, self._feed)
        return entry

    def _take_over(self, db: psycopg.Connection) -> tuple[int, int]:
        row = db.execute(statements.TAKE_OVER, (self._id,)).fetchone()
        if row is None:
            raise dropped(self._keyed.what, self.version or 1)
        return int(row[0]), int(row[1])

    def _store(self, db: psycopg.Connection, settled: Fitted, batch: Batch) -> bool:
        staged = Statements(self._table, self._keyed)
        if len(settled):
            self._stage(db, settled, staged)
            crash.point("postgres: staged")
        # After the copy, so that the lock is held for the shorter part.
        self._last, changed, filled, sql = self._lock_progress(db)
        if batch.number <= self._last:
            return False
        if len(settled):
            changed += self._save_changes(db, sql, changed, batch.number)
            db.execute(sql.upsert)
            db.execute(sql.delete)
            filled = not settled.deleted.all() or db.execute(sql.any).fetchone() == (True,)
        crash.point("postgres: rows stored")
        positions = "\n".join(map(str, batch.positions))
        db.execute(
            statements.SAVE_PROGRESS, (batch.number, positions, batch.watermark, changed, filled, self._id)
        )
        db.execute(statements.NOTIFY, (self._table,))
        crash.point("postgres: before commit")
        return True

    def _save_changes(self, db: psycopg.Connection, sql: Statements, last: int, number: int) -> int:
        """Save what changes, prune what is older than the feed, and return how many changed."""
        if not self._feed:
            return 0
        count = db.execute(sql.save_changes, (last, number)).rowcount
        db.execute(sql.prune, (last + count - self._feed,))
        return count

    def _stage(self, db: psycopg.Connection, settled: Fitted, sql: Statements) -> None:
        db.execute(sql.prepare)
        with db.cursor() as cursor, cursor.copy(sql.copy) as copy:
            copy.write(columns.to_csv(settled))
            crash.point("postgres: copying")

    def _lock_progress(self, db: psycopg.Connection) -> tuple[int, int, bool, Statements]:
        """Lock and return how far the table is: batch, change, whether it has rows, and its SQL."""
        row = db.execute(statements.LOCK_PROGRESS, (self._id,)).fetchone()
        if row is None:
            raise dropped(self._keyed.what, self.version or 1)
        epoch, last, changed, published, filled = row
        if epoch != self._epoch:
            raise taken_over(self._keyed.what)
        name = self._table if published else f"{self._table}@{self.version}"
        return int(last), int(changed), bool(filled), Statements(name, self._keyed)
