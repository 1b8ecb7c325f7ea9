"""Changes of a table as a source delivers them, made by hand or by statements of SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from headwater.capture.change import OPERATIONS, SourceColumn, SourceTable, TableChanges, Transactions
from headwater.capture.writing.captured_table import CapturedTable
from headwater.log import Log

COLUMNS = pa.schema([pa.field("id", pa.int64(), False), pa.field("name", pa.string())])
CUSTOMERS = SourceTable(
    "customers",
    (SourceColumn("id", pa.int64(), "bigint", nullable=False), SourceColumn("name", pa.string(), "text")),
    ("id",),
)
CAPTURED = CapturedTable("customers", "customers", COLUMNS, ("id",))


Statement = str | tuple[str, tuple[object, ...]]


def execute(path: Path, *statements: Statement) -> None:
    """Run statements, with their parameters, in one transaction."""
    db = sqlite3.connect(path, timeout=30)
    with db:
        for statement in statements:
            db.execute(*(statement if isinstance(statement, tuple) else (statement,)))
    db.close()


def changes(*rows: tuple[str, int, str | None], first: int = 0) -> TableChanges:
    """Return changes, (operation, id, name) each, every one a transaction of its own."""
    numbers = range(first, first + len(rows))
    once = Transactions(
        tuple(f"t{number}" for number in numbers),
        tuple(f"{number:08d}" for number in numbers),
        np.array([1_000_000 * number for number in numbers], np.int64),
    )
    operations = np.array([OPERATIONS.index(operation) for operation, *_ in rows], np.int8)
    count = np.arange(len(rows), dtype=np.int64)
    return TableChanges(
        CUSTOMERS, operations, batch([row[1:] for row in rows]), once, count, np.zeros_like(count)
    )


def batch(rows: Sequence[tuple[int, str | None]]) -> pa.RecordBatch:
    """Return rows of the table, (id, name) each."""
    return pa.RecordBatch.from_pylist([{"id": id, "name": name} for id, name in rows], COLUMNS)


def newest(log: Log, topic: str = "customers") -> dict[int, str | None]:
    """Return what a topic holds, by key."""
    held: dict[int, Any] = {}
    for row in (row for part in log.read(topic) for row in part.to_pylist()):
        held.pop(row["id"], None)
        if not row["_deleted"]:
            held[row["id"]] = row["name"]
    return held
