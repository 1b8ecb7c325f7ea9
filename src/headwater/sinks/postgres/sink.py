"""The sink of a PostgreSQL table: one commit is one transaction of the server.

Rows are copied into a temporary table of the session and put in their places from there. Invariant:
the rows of a batch, its number, positions and clock are committed together, by the runner with the
newest epoch only; a commit whose answer was lost is recognised by its number.
"""

from __future__ import annotations

import json
from datetime import timedelta

import psycopg
import pyarrow as pa

from headwater import clock
from headwater import schema as schemas
from headwater.errors import Fenced, SchemaError, UsageError
from headwater.sinks import crash
from headwater.sinks.fitting import Fitted
from headwater.sinks.keyed import declare, settle
from headwater.sinks.postgres import columns, statements
from headwater.sinks.postgres.connection import Connection
from headwater.sinks.postgres.statements import Statements
from headwater.sinks.sink import Batch, Sink


class PostgresSink(Sink):
    """Keeps a PostgreSQL table of a node's results by key.

    The table, which may be named with its schema (``sales.orders``), is made if it is not there; one
    that is there needs the columns and a unique constraint on the key. How far it has got is in the
    table ``headwater_sinks``; with ``feed`` at least that many of the newest changes are kept in a
    table beside it, named with ``_changes`` at its end. ``PostgresView`` reads all three. When the
    connection breaks, or the server restarts, the commit is repeated for up to ``patience``.

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
        feed: int = 0,
        patience: str | timedelta = "1 minute",
    ):
        self._table, self._keyed = table, declare(f'table "{table}"', schema, key)
        self._sql = Statements(table, self._keyed)
        self._connection = Connection(dsn, self._keyed.what, clock.interval(patience).total_seconds())
        self._epoch: int | None = None
        self._last = -1
        self._feed = feed

    def begin(self) -> int:
        """Take over from any other runner; return the number of the last batch committed, or -1."""
        self._epoch, last = self._connection.run(self._begin)
        crash.point("postgres: begun")
        return last

    def commit(self, batch: Batch) -> bool:
        """Make a batch visible, whole; return False if it was there before."""
        if self._epoch is None:
            raise UsageError(f"sink of {self._keyed.what} has not begun", hint="call begin() first")
        settled = settle(batch.rows, self._keyed)
        attempts = 0

        def attempt(db: psycopg.Connection) -> bool:
            nonlocal attempts
            attempts += 1
            new = self._store(db, settled, batch)
            # An attempt before this one may have been committed, though its answer never came.
            return new or (attempts > 1 and self._last == batch.number)

        done = self._connection.run(attempt)
        crash.point("postgres: committed")
        return done

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def _begin(self, db: psycopg.Connection) -> tuple[int, int]:
        db.execute(statements.ALONE)
        db.execute(statements.PROGRESS)
        db.execute(self._sql.create)
        if self._feed:
            db.execute(self._sql.create_changes)
        wanted = (schemas.ddl(self._keyed.schema), json.dumps(self._keyed.key))
        found = db.execute(statements.BEGIN, (self._table, *wanted)).fetchone()
        assert found is not None, "the statement returns a row"
        if found[:2] != wanted:
            raise SchemaError(
                f"sink of {self._keyed.what} has had other columns or another key",
                detail=f"it has `{found[0]}` by {found[1]}, asked for `{wanted[0]}` by {wanted[1]}",
                hint="write to another table, or drop this one and its row in headwater_sinks",
            )
        return found[2], found[3]

    def _store(self, db: psycopg.Connection, settled: Fitted, batch: Batch) -> bool:
        if len(settled):
            self._stage(db, settled)
            crash.point("postgres: staged")
        # After the copy, so that the lock is held for the shorter part.
        self._last, changed = self._reached(db)
        if batch.number <= self._last:
            return False
        if len(settled):
            changed += self._note(db, changed, batch.number)
            db.execute(self._sql.upsert)
            db.execute(self._sql.delete)
        crash.point("postgres: rows stored")
        positions = "\n".join(map(str, batch.positions))
        db.execute(statements.NOTE, (batch.number, positions, batch.clock, changed, self._table))
        db.execute(statements.TELL, (self._table,))
        crash.point("postgres: before commit")
        return True

    def _note(self, db: psycopg.Connection, last: int, number: int) -> int:
        """Note what changes, forget what is older than the feed, and return how many changed."""
        if not self._feed:
            return 0
        count = db.execute(self._sql.note, (last, number)).rowcount
        db.execute(self._sql.prune, (last + count - self._feed,))
        return count

    def _stage(self, db: psycopg.Connection, settled: Fitted) -> None:
        db.execute(self._sql.prepare)
        with db.cursor() as cursor, cursor.copy(self._sql.copy) as copy:
            copy.write(columns.to_csv(settled))

    def _reached(self, db: psycopg.Connection) -> tuple[int, int]:
        """Return the last batch and the last change, or say that another runner has taken over."""
        found = db.execute(statements.REACHED, (self._table,)).fetchone()
        if found is not None and found[0] == self._epoch:
            return int(found[1]), int(found[2])
        raise Fenced(
            f"another runner has taken over {self._keyed.what}",
            detail="nothing was written",
            hint="let this runner end: the other goes on from the last batch",
        )
