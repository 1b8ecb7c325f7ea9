"""Rows of a table in the order of its key, some at a time, for snapshots.

Invariant: a chunk and the end of the outbox are of the same moment; the read transaction ends with the
chunk.
"""

from __future__ import annotations

from headwater.capture.change import SnapshotChunk
from headwater.capture.sqlite import catalog, decoding
from headwater.capture.sqlite.catalog import SqliteTable
from headwater.capture.sqlite.connection import Row, SqliteConnection
from headwater.capture.sqlite.object_names import quoted
from headwater.capture.sqlite.outbox import Outbox

Key = tuple[object, ...]


def read_chunk(
    db: SqliteConnection, outbox: Outbox, table: str, after: Key | None, limit: int
) -> SnapshotChunk:
    """Return the rows behind a key; those without a whole key, which never fit, are with the first."""
    with db.snapshot():
        shape = catalog.table_shape(db, table)
        rows = db.readable(lambda: _rows(db, shape, after, limit))
        nulls = db.readable(lambda: _nulls(db, shape)) if after is None and shape.nullable_key else []
        end = outbox.end()
    found = [*nulls, *rows]
    columns = list(zip(*found, strict=True)) or [()] * len(shape.table.columns)
    batch, unfit = decoding.batch(columns, shape.table)
    return SnapshotChunk(batch, str(end), len(rows) < limit, _key(shape, rows[-1]) if rows else None, unfit)


def _rows(db: SqliteConnection, shape: SqliteTable, after: Key | None, limit: int) -> list[Row]:
    key = [
        f"{quoted(name)} COLLATE {quoted(collation)}"
        for name, collation in zip(shape.table.key, shape.collations, strict=True)
    ]
    behind = f"({', '.join(key)}) > ({', '.join('?' * len(key))})" if after is not None else "1"
    known = " AND ".join(f"{quoted(name)} IS NOT NULL" for name in shape.table.key)
    query = f"{_select(shape)} WHERE {behind} AND {known} ORDER BY {', '.join(key)} LIMIT ?"
    return db.rows(query, *(after or ()), limit)


def _nulls(db: SqliteConnection, shape: SqliteTable) -> list[Row]:
    unknown = " OR ".join(f"{quoted(name)} IS NULL" for name in shape.table.key)
    return db.rows(f"{_select(shape)} WHERE {unknown}")


def _select(shape: SqliteTable) -> str:
    columns = ", ".join(quoted(each.name) for each in shape.table.columns)
    return f"SELECT {columns} FROM {quoted(shape.table.name)}"  # noqa: S608  # names, quoted


def _key(shape: SqliteTable, row: Row) -> Key:
    names = [each.name for each in shape.table.columns]
    return tuple(row[names.index(name)] for name in shape.table.key)
