"""Rows that a table has already, read in chunks by key beside the stream.

Each chunk is a query in a transaction with a consistent snapshot. A server sends a transaction to its
replicas before its changes can be seen, so a snapshot may miss what the stream has delivered: then another
one is made.

Invariant: everything that was delivered before a chunk was asked for is in it; all that is in it is in the
stream before its end.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Final

import pyarrow as pa

from headwater.capture.change import SnapshotChunk
from headwater.capture.mysql.catalog import MySqlTable
from headwater.capture.mysql.column_types import MySqlColumn
from headwater.capture.mysql.gtids import Gtids
from headwater.capture.mysql.position import BinlogPlace
from headwater.capture.mysql.row_changes import reasons
from headwater.capture.mysql.server import MySqlServer
from headwater.capture.mysql.session import MySqlConnection, Rows
from headwater.capture.mysql.values import from_query
from headwater.errors import SourceUnavailable
from headwater.names import backquoted

_PATIENCE, _PAUSE = 30.0, 0.002
_COUNTED: Final = 10_000
_SNAPSHOT: Final = (
    "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ",
    "START TRANSACTION WITH CONSISTENT SNAPSHOT",
)


@dataclass(frozen=True)
class DeliveredUntil:
    """What the stream has delivered, the beginning of an open transaction with it."""

    gtids: Gtids
    place: BinlogPlace


@dataclass(frozen=True)
class ChunkRequest:
    """Which rows of a table are wanted."""

    table: MySqlTable
    after: Sequence[object] | None
    limit: int


def read_chunk(
    db: MySqlConnection, server: MySqlServer, request: ChunkRequest, delivered: DeliveredUntil | None
) -> SnapshotChunk:
    """Return the next rows, by a moment that sees all that was delivered."""
    deadline = time.monotonic() + _PATIENCE
    while True:
        before = server.gtids(db)
        with _snapshot(db):
            if delivered is None or _sees(db, server, before, delivered):
                # What is committed since the moment of the snapshot is not in it, which its end may have.
                end = server.gtids(db)
                return _chunk(request, db.rows(*_query(request)), end)
        if time.monotonic() > deadline:
            hint = "see whether the server hangs in a commit: its process list, and its replicas"
            raise SourceUnavailable("a snapshot does not see what the binlog has", hint=hint)
        time.sleep(_PAUSE)


def count(db: MySqlConnection, database: str, table: str) -> int:
    """Return how many rows a table has: exactly if they are few, else as the server estimates."""
    few = f"SELECT COUNT(*) FROM (SELECT 1 FROM {backquoted(table)} LIMIT {_COUNTED + 1}) AS few"  # noqa: S608
    found = int(db.value(few))
    if found <= _COUNTED:
        return found
    estimate = "SELECT TABLE_ROWS FROM information_schema.TABLES WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s"
    return max(found, int(db.value(estimate, (database, table)) or 0))


@contextmanager
def _snapshot(db: MySqlConnection) -> Iterator[None]:
    for statement in _SNAPSHOT:
        db.rows(statement)
    try:
        yield
    finally:
        if db.open:
            db.rows("ROLLBACK")


def _sees(db: MySqlConnection, server: MySqlServer, before: Gtids, delivered: DeliveredUntil) -> bool:
    """Tell whether the snapshot that was just made has everything that was delivered.

    MariaDB says where in the binlog a snapshot was made. MySQL counts a transaction as executed when its
    changes can be seen, so what it had executed before is in the snapshot.
    """
    if not server.mariadb:
        return before.covers(delivered.gtids)
    status = {str(name).lower(): value for name, value in db.rows("SHOW STATUS LIKE 'binlog_snapshot_%'")}
    place = BinlogPlace(
        server.number, str(status["binlog_snapshot_file"]), int(status["binlog_snapshot_position"])
    )
    return delivered.place.server != server.number or place.order >= delivered.place.order


def _chunk(request: ChunkRequest, rows: Rows, end: Gtids) -> SnapshotChunk:
    table = request.table
    columns = list(zip(*rows, strict=True)) or [()] * len(table.columns)
    read = columns[: len(table.columns)]
    converted = [from_query(column, values) for column, values in zip(table.columns, read, strict=True)]
    batch = pa.RecordBatch.from_arrays([each.array for each in converted], schema=table.schema)
    after = tuple(_stored(value) for value in rows[-1][len(table.columns) :]) if rows else None
    return SnapshotChunk(batch, str(end), len(rows) < request.limit, after, reasons(table, converted))


def _query(request: ChunkRequest) -> tuple[str, list[object]]:
    """Return a query for the columns of a table, and the terms of its key as they are compared."""
    table, key = request.table, _key(request.table)
    terms = [_term(each) for each in key]
    columns = ", ".join([*(_selected(each) for each in table.columns), *terms])
    where, parameters = _behind(key, request.after)
    query = (
        f"SELECT {columns} FROM {backquoted(table.table.name)}{where} ORDER BY {', '.join(terms)} LIMIT %s"  # noqa: S608
    )
    return query, [*parameters, request.limit]


def _behind(key: Sequence[MySqlColumn], after: Sequence[object] | None) -> tuple[str, list[object]]:
    """Return the condition for rows behind a key.

    It says ``(a, b) > (x, y)`` as ``a >= x AND (a > x OR (a = x AND b > y))``: the server looks the
    first part up in the index, which it does not do for the short form.
    """
    if after is None:
        return "", []
    terms = [_term(each) for each in key]
    values = [_parameter(column, value) for column, value in zip(key, after, strict=True)]
    cases, parameters = [], [values[0]]
    for number, term in enumerate(terms):
        cases.append(" AND ".join([*(f"{each} = %s" for each in terms[:number]), f"{term} > %s"]))
        parameters += values[: number + 1]
    return f" WHERE {terms[0]} >= %s AND (({') OR ('.join(cases)}))", parameters


def _key(table: MySqlTable) -> list[MySqlColumn]:
    present = {each.name: each for each in table.columns}
    return [present[name] for name in table.table.key]


def _selected(column: MySqlColumn) -> str:
    # A FLOAT is printed with six digits, which are not all of it.
    return f"{backquoted(column.name)} * 1e0" if column.kind == "float" else backquoted(column.name)


def _term(column: MySqlColumn) -> str:
    """Return what a column of a key is ordered and compared by: the same in both."""
    if column.kind in ("enum", "set"):  # which are ordered as numbers, and compared with texts as texts
        return f"{backquoted(column.name)} + 0"
    return f"{backquoted(column.name)} + 0" if column.kind == "bit" else _selected(column)


def _stored(value: object) -> object:
    """Return a value of a key as it is kept, and given again for the next chunk."""
    if isinstance(value, bytes):
        return value.hex()
    return str(value) if isinstance(value, Decimal | date) else value


def _parameter(column: MySqlColumn, value: object) -> object:
    if column.kind == "decimal":
        return Decimal(str(value))
    return bytes.fromhex(str(value)) if pa.types.is_binary(column.type) else value
