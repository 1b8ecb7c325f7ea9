"""Rows that are deleted by their keys: those of an outbox that were captured."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa

from headwater.capture.sqlite.connection import SqliteConnection
from headwater.capture.sqlite.object_names import quoted


def delete_rows(db: SqliteConnection, table: str, keys: pa.RecordBatch) -> None:
    """Delete rows, within a transaction of the caller."""
    same = " AND ".join(f"{quoted(name)} = ?" for name in keys.schema.names)
    statement = f"DELETE FROM {quoted(table)} WHERE {same}"  # noqa: S608  # names, quoted
    for key in zip(*(column.to_pylist() for column in keys.columns), strict=True):  # no other way in SQLite
        # A decimal is given as text, which SQLite compares as a number with a column of numbers.
        db.execute(statement, *(str(value) if isinstance(value, Decimal) else value for value in key))
