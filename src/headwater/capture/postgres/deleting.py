"""Rows that are deleted by their keys: those of an outbox that were captured.

Invariant: nobody waits long: where an application has rows locked, none is deleted.
"""

from __future__ import annotations

import psycopg
import pyarrow as pa
from psycopg.sql import SQL, Composed, Identifier

from headwater.capture.postgres.catalog import PostgresTable
from headwater.capture.postgres.snapshot import key_text


def delete_rows(db: psycopg.Connection, table: PostgresTable, keys: pa.RecordBatch) -> bool:
    """Delete rows in a transaction; return whether that was possible now."""
    columns = [[key_text(value) for value in column.to_pylist()] for column in keys.columns]
    try:
        with db.transaction():
            db.execute("SET LOCAL lock_timeout = '1s'")
            db.execute(_statement(table, keys.schema.names), columns)
    except (psycopg.errors.LockNotAvailable, psycopg.errors.DeadlockDetected):
        return False
    return True


def _statement(table: PostgresTable, names: list[str]) -> Composed:
    types = {column.name: column.sql_type for column in table.layout.table.columns}
    told = [Identifier(f"c{number}") for number in range(len(names))]
    same = [
        # The type is as the catalog writes it.
        SQL("source.{} = told.{}::{}").format(Identifier(name), column, SQL(types[name]))
        for name, column in zip(names, told, strict=True)
    ]
    return SQL("DELETE FROM {} {} AS source USING unnest({}) AS told ({}) WHERE {}").format(
        SQL("" if table.partitioned else "ONLY"),
        Identifier(table.schema, table.name),
        SQL(", ").join([SQL("%s::text[]")] * len(names)),
        SQL(", ").join(told),
        SQL(" AND ").join(same),
    )
