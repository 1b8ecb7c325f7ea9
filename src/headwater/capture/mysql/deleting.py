"""Rows that are deleted by their keys: those of an outbox that were captured.

Invariant: nobody waits long: where an application has rows locked, none is deleted.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pymysql

from headwater.capture.mysql.session import MySqlConnection
from headwater.names import backquoted

_LOCKED: Final = (1205, 1213)
"""A lock was waited for too long, and a deadlock."""


def delete_rows(db: MySqlConnection, table: str, keys: pa.RecordBatch) -> bool:
    """Delete rows in a transaction; return whether that was possible now."""
    names = keys.schema.names
    one = f"({', '.join(['%s'] * len(names))})"
    columns = ", ".join(map(backquoted, names))
    statement = f"DELETE FROM {backquoted(table)} WHERE ({columns}) IN ({', '.join([one] * len(keys))})"  # noqa: S608
    values = [
        value for row in zip(*(each.to_pylist() for each in keys.columns), strict=True) for value in row
    ]
    db.rows("SET SESSION innodb_lock_wait_timeout = 1")
    try:
        db.rows(statement, values)
    except pymysql.err.OperationalError as error:
        if error.args[0] not in _LOCKED:
            raise
        return False
    return True
