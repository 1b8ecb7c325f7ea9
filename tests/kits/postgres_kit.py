"""What the tests of views in PostgreSQL share: a view of stock, and its table as others see it."""

from __future__ import annotations

import psycopg
import pyarrow as pa
from psycopg.sql import SQL, Identifier

from headwater import Position
from headwater.sinks import Batch

STOCK = "item STRING, count BIGINT"


def stock(number: int, **counts: int) -> Batch:
    """Return a batch of a view of stock."""
    rows = pa.table({"item": list(counts), "count": list(counts.values())})
    return Batch(number, rows, (Position("orders", {0: number + 1}),))


def selected(db: psycopg.Connection, table: str) -> dict[str, int]:
    """Return what anyone selects from a table of stock."""
    return dict(db.execute(SQL("SELECT item, count FROM {}").format(Identifier(table))).fetchall())
