"""Rows of a table as one moment has them, in the order of its key, beside the stream.

A transaction is in the log, and may be in the stream, a moment before others can see it. So the transactions
that were handed out last are remembered, and a moment that does not see one of them yet is not used.

Invariant: what was delivered before a chunk was asked for is in it; all that is in it is in the stream before
its end.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, Final

import numpy as np
import psycopg
import pyarrow as pa
from psycopg import pq
from psycopg.sql import SQL, Composable, Identifier, Literal

from headwater.capture.change import Numbers
from headwater.capture.postgres import position
from headwater.capture.postgres.catalog import PostgresTable
from headwater.capture.postgres.fetching import Messages, failure, finish, take, wait
from headwater.capture.postgres.row_changes import Columns, Layout, decoded
from headwater.capture.postgres.session import PostgresSession
from headwater.capture.postgres.slot import unseen
from headwater.capture.postgres.tuples import split_copied

_REMEMBERED: Final = 4096
_PATIENCE, _PAUSE = 30.0, 0.002
_HEADER: Final = 19
_HALF, _ALL = 2**31, 2**32 - 1
_MOMENT: Final = "SELECT pg_current_snapshot()::text, pg_current_wal_insert_lsn()::text"
_COUNTED: Final = 10_000


@dataclass(frozen=True)
class Rows:
    """Rows of a chunk."""

    batch: pa.RecordBatch
    unfit: dict[int, str]
    after: tuple[object, ...] | None
    end: int


class ChunkReader:
    """Reads chunks on an ordinary connection."""

    def __init__(self, session: PostgresSession, title: str):
        self._session, self._title = session, title
        self._delivered = np.zeros(0, np.int64)

    def delivered(self, transactions: Numbers) -> None:
        """Remember transactions that the stream has handed out."""
        self._delivered = np.concatenate([self._delivered, transactions[-_REMEMBERED:]])[-_REMEMBERED:]

    def chunk(self, table: PostgresTable, after: Sequence[object] | None, limit: int) -> Rows:
        """Return the next rows, by a moment that sees all that was delivered."""
        deadline = time.monotonic() + _PATIENCE
        while (rows := self._session.run(lambda db: self._attempt(db, table, after, limit))) is None:
            if time.monotonic() > deadline:
                raise unseen(self._title)
            time.sleep(_PAUSE)
        return rows

    def count(self, table: PostgresTable) -> int:
        """Return how many rows a table has: exactly if they are few, else as the planner estimates."""
        return self._session.run(lambda db: _count(db, _source(table)))

    def _attempt(
        self, db: psycopg.Connection, table: PostgresTable, after: Sequence[object] | None, limit: int
    ) -> Rows | None:
        db.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        found = db.execute(_MOMENT).fetchone()
        assert found is not None
        if not sees(found[0], self._delivered):
            return None
        layout = table.captured()
        columns = _copied(db, _query(table, layout, after, limit), layout)
        batch = pa.RecordBatch.from_arrays(list(columns.arrays), schema=layout.schema)
        end = position.record_end(position.number(found[1]))
        return Rows(batch, columns.unfit, _last_key(db, table, batch, (after, limit)), end)


def sees(snapshot: str, transactions: Numbers) -> bool:
    """Tell whether a snapshot of the server, as text, sees all of some transactions.

    The stream has the lower half of a transaction's number, which begins again after some billions.
    """
    _, newest, running = snapshot.split(":")
    unseen = np.array([int(each) & _ALL for each in running.split(",") if each], np.int64)
    later = ((transactions - (int(newest) & _ALL)) & _ALL) < _HALF
    return not bool(later.any() or np.isin(transactions, unseen).any())


def _copied(db: psycopg.Connection, query: Composable, layout: Layout) -> Columns:
    """Run a query through a binary ``COPY``, which sends a message for each row."""
    copy = SQL("COPY ({}) TO STDOUT (FORMAT binary)").format(query)
    result = db.pgconn.exec_(copy.as_bytes(db))
    if result.status != pq.ExecStatus.COPY_OUT:
        raise failure(result)
    try:
        joined = _all_messages(db.pgconn)
    except BaseException:
        db.close()  # it is in the middle of a copy
        raise
    start = joined.start.copy()
    start[:1] += _HEADER
    ends = joined.buffer.numbers("i2", start).astype(np.int64) < 0
    return decoded(split_copied(joined.buffer, start[~ends], len(layout.decoders)).columns, layout)


def _all_messages(pg: pq.abc.PGconn) -> Messages:
    messages: list[Any] = []
    while not (taken := take(pg)).ended:
        messages += taken.messages
        if not taken.messages:
            wait(pg, 1.0)
    finish(pg)
    return Messages.of(messages + taken.messages)


def _query(table: PostgresTable, layout: Layout, after: Sequence[object] | None, limit: int) -> Composable:
    columns = [
        SQL("{}" if decoder.binary is not None else "{}::text").format(Identifier(column.name))
        for column, decoder in zip(layout.table.columns, layout.decoders, strict=True)
    ]
    return SQL("SELECT {} FROM {} {} ORDER BY {} LIMIT {}").format(
        SQL(", ").join(columns), _source(table), _behind(table, after), _keys(table), Literal(limit)
    )


def _source(table: PostgresTable) -> Composable:
    name = Identifier(table.schema, table.name)
    return SQL("{} AS source" if table.partitioned else "ONLY {} AS source").format(name)


def _keys(table: PostgresTable) -> Composable:
    # A name alone would mean the column of the result, which may be its text.
    return SQL(", ").join(Identifier("source", name) for name in table.layout.table.key)


def _behind(table: PostgresTable, after: Sequence[object] | None) -> Composable:
    """Return the condition for rows behind a key, by the order of the key's own types."""
    if after is None:
        return SQL("")
    types = {column.name: column.sql_type for column in table.layout.table.columns}
    values = [
        SQL("{}::{}").format(Literal(key_text(value)), SQL(types[name]))  # a type as the catalog writes it
        for name, value in zip(table.layout.table.key, after, strict=True)
    ]
    return SQL("WHERE ({}) > ({})").format(_keys(table), SQL(", ").join(values))


def key_text(value: object) -> str:
    """Return a value of a key as PostgreSQL reads it."""
    if isinstance(value, bytes):
        return "\\x" + value.hex()
    return (
        value.isoformat(*([" "] if hasattr(value, "hour") else [])) if isinstance(value, date) else str(value)
    )


def _last_key(
    db: psycopg.Connection,
    table: PostgresTable,
    batch: pa.RecordBatch,
    asked: tuple[Sequence[object] | None, int],
) -> tuple[object, ...] | None:
    """Return the key of the last row as texts, which can be stored and are exact."""
    if not batch.num_rows:
        return None
    last = [batch.column(name)[-1].as_py() for name in table.layout.table.key]
    if None not in last and not any(isinstance(value, list) for value in last):
        return tuple(map(key_text, last))
    # A value that Arrow cannot hold, such as an infinite date, is asked for as text.
    texts = SQL(", ").join(SQL("{}::text").format(Identifier(name)) for name in table.layout.table.key)
    query = SQL("SELECT {} FROM {} {} ORDER BY {} OFFSET {} LIMIT 1").format(
        texts, _source(table), _behind(table, asked[0]), _keys(table), Literal(batch.num_rows - 1)
    )
    return db.execute(query).fetchone()


def _count(db: psycopg.Connection, source: Composable) -> int:
    few = SQL("SELECT count(*) FROM (SELECT FROM {} LIMIT {}) AS first").format(source, Literal(_COUNTED + 1))
    found = db.execute(few).fetchone()
    assert found is not None
    if found[0] <= _COUNTED:
        return int(found[0])
    plan = db.execute(SQL("EXPLAIN (FORMAT json) SELECT FROM {}").format(source)).fetchone()
    assert plan is not None
    return int(plan[0][0]["Plan"]["Plan Rows"])
