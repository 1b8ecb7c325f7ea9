"""Reading a PostgreSQL sink as a view: by key, by range, as it changes, after one's own writes.

Invariant: what one read returns is the table as it was after one batch, never in the middle of one.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import psycopg
import pyarrow as pa
from psycopg.sql import SQL, Composed, Identifier

from headwater import schema as schemas
from headwater.errors import Behind, UsageError
from headwater.log.position import Position
from headwater.sinks.keyed import Keyed, key_values
from headwater.sinks.postgres import columns
from headwater.sinks.postgres.connection import Connection
from headwater.sinks.postgres.statements import Statements
from headwater.sinks.views.feed import Change, change, check_kept
from headwater.sinks.views.query import Query
from headwater.sinks.views.wait import missing

_CHUNK = 1_000
_LOOK_SECONDS = 5.0
"""How often to look though nothing was told."""
_STATE = SQL("SELECT columns, key, positions, clock, changes FROM headwater_sinks WHERE name = %s")


class PostgresView:
    """One table that a ``PostgresSink`` keeps, for reading; for one thread at a time.

    It reads as ``headwater.sinks.views.View`` does, with these differences: ``scan`` returns a table,
    text is in the order of the database's collation, and there are changes only where the sink was
    given a ``feed``. Waiting is by ``LISTEN``, so a commit is seen at once.
    """

    def __init__(self, dsn: str, table: str, *, patience: float = 10.0):
        self.name = table
        self._connection = Connection(dsn, f'table "{table}"', patience)
        try:
            declared, key, *_ = self._state()
        except BaseException:
            self._connection.close()
            raise
        self._keyed = Keyed(f'table "{table}"', schemas.parse(declared), tuple(json.loads(key)))
        self._sql = Statements(table, self._keyed)

    @property
    def schema(self) -> pa.Schema:
        """The table's columns."""
        return self._keyed.schema

    @property
    def key(self) -> tuple[str, ...]:
        """The columns of its key."""
        return self._keyed.key

    def get(
        self, key: Any, *, wait_for: Position | None = None, timeout: float = 30.0
    ) -> dict[str, Any] | None:
        """Return the row of a key, or None."""
        found = self._read(Query(key_values(key, self._keyed)), wait_for, timeout).to_pylist()
        return found[0] if found else None

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
        timeout: float = 30.0,
    ) -> pa.Table:
        """Return the rows, or some of them, by key or in the order of a column."""
        leading = prefix if isinstance(prefix, tuple) else () if prefix is None else (prefix,)
        return self._read(Query(leading, start, end, order, descending, limit), wait_for, timeout)

    def changes(self, since: int = 0, follow: bool = False, timeout: float | None = None) -> Iterator[Change]:
        """Yield the changes after a number; with ``follow`` wait for more, each time up to ``timeout``."""
        while True:
            while chunk := self._connection.run(partial(self._chunk, since=since)):
                yield from chunk
                since = chunk[-1].sequence
            if not follow or not any(self.sequence() > since for _ in self._commits(timeout)):
                return

    def sequence(self) -> int:
        """Return the number of the newest change."""
        return int(self._state()[4])

    def position(self) -> tuple[Position, ...]:
        """Return how far each input is included."""
        return tuple(Position.parse(text) for text in self._state()[2].split())

    def clock(self) -> int | None:
        """Return the clock, in microseconds since 1970; None where it has none."""
        found: int | None = self._state()[3]
        return found

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def _state(self) -> tuple[Any, ...]:
        found = self._connection.run(self._known)
        if found is None:
            raise UsageError(f'no sink writes to table "{self.name}"', hint="see the table headwater_sinks")
        return found

    def _known(self, db: psycopg.Connection) -> tuple[Any, ...] | None:
        there = db.execute("SELECT to_regclass('headwater_sinks') IS NOT NULL").fetchone()
        return db.execute(_STATE, (self.name,)).fetchone() if there == (True,) else None

    def _read(self, query: Query, wait_for: Position | None, timeout: float) -> pa.Table:
        if wait_for is not None:
            self._wait(wait_for, timeout)
        statement, values = self._select(query)
        rows = self._connection.run(lambda db: db.execute(statement, values).fetchall())
        return pa.Table.from_batches([columns.to_batch(rows, self._keyed.schema)])

    def _select(self, query: Query) -> tuple[Composed, list[Any]]:
        asked = query.conditions(self._keyed)
        where = [SQL("{} {} %s").format(Identifier(f.name), SQL(sign)) for f, sign, _ in asked]
        every = SQL("true").format()
        direction = SQL(" DESC NULLS LAST" if query.descending else " NULLS FIRST")
        order = [Identifier(name) + direction for name in query.ordered(self._keyed)]
        return (
            SQL("SELECT {} FROM {} WHERE {} ORDER BY {} LIMIT %s").format(
                SQL(", ").join(self._sql.names),
                self._sql.target,
                SQL(" AND ").join(where or [every]),
                SQL(", ").join(order),
            ),
            [*(value for _, _, value in asked), query.checked_limit()],
        )

    def _chunk(self, db: psycopg.Connection, since: int) -> list[Change]:
        earliest, last = db.execute(
            SQL("SELECT coalesce(min(number), s.changes + 1), s.changes FROM headwater_sinks s "
                "LEFT JOIN {} ON true WHERE name = %s GROUP BY s.changes").format(self._sql.changes),
            (self.name,),
        ).fetchone() or (1, 0)  # fmt: skip
        check_kept(self.name, since, earliest, last)
        parts = [
            SQL("({}).{}").format(SQL(side), name) for side in ("old", "new") for name in self._sql.names
        ]
        query = SQL("SELECT number, kind, batch, {} FROM {} WHERE number > %s ORDER BY number LIMIT %s")
        rows = db.execute(query.format(SQL(", ").join(parts), self._sql.changes), (since, _CHUNK)).fetchall()
        return self._decoded(rows)

    def _decoded(self, rows: list[tuple[Any, ...]]) -> list[Change]:
        width = len(self._keyed.schema)
        schema = pa.schema([field.with_nullable(True) for field in self._keyed.schema])
        old = columns.to_batch([row[3 : 3 + width] for row in rows], schema).to_pylist()
        new = columns.to_batch([row[3 + width :] for row in rows], schema).to_pylist()
        return [
            change(number, kind, batch, before, after, self._keyed.key)
            for (number, kind, batch, *_), before, after in zip(rows, old, new, strict=True)
        ]

    def _wait(self, wanted: Position, timeout: float) -> None:
        for _ in self._commits(timeout):
            at = {position.topic: position for position in self.position()}
            reached = at.get(wanted.topic, Position(wanted.topic))
            if reached.passed(wanted):
                return
        raise Behind(
            f'table "{self.name}" has not caught up within {timeout:g} seconds',
            detail=f'it has read up to "{reached}", not up to "{wanted}": '
            f"{missing(reached, wanted):,} records are missing",
            hint="see whether its pipeline runs, or wait longer",
        )

    def _commits(self, timeout: float | None) -> Iterator[None]:
        """Yield at once, then after each commit of the sink, until the time is over."""
        deadline = float("inf") if timeout is None else time.monotonic() + timeout
        while True:
            self._connection.listen()  # before the look, and again on a connection that was made anew
            yield
            left = deadline - time.monotonic()
            if left <= 0:
                return
            self._connection.wait(min(left, _LOOK_SECONDS))
