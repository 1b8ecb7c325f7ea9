"""Upserts into a view, with its change feed, beside the statement that one would write by hand; and reading.

By hand means ``INSERT … ON CONFLICT DO UPDATE`` with ``executemany``, one transaction per batch, as in
a ``foreachBatch``: no changes are kept, no batch number, no positions, and nobody is shut out.
"""

from __future__ import annotations

import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pyarrow as pa
from rich.console import Console
from rich.table import Table

from headwater.sinks import Batch
from headwater.sinks.sink import Sink
from headwater.views import View, ViewStore, open_views
from headwater.views.postgres import PostgresStore

sys.path.append(str(Path(__file__).parents[1] / "tests" / "servers"))
from postgres_server import running_server  # the tests' own server

SCHEMA = "id BIGINT, name STRING, amount DOUBLE"
BATCHES, ROWS, KEYS = 20, 10_000, 200_000
LARGE, MANY, SHOPS = 1_000_000, 100_000, 100
MADE = "CREATE TABLE plain (id BIGINT PRIMARY KEY, name TEXT, amount DOUBLE PRECISION)"
UPSERT = (
    "INSERT INTO plain VALUES ({0}, {0}, {0}) "
    "ON CONFLICT (id) DO UPDATE SET name = excluded.name, amount = excluded.amount"
)
console = Console(width=110)


def main() -> None:
    table = Table(title=f"view upserts, batches of {ROWS:,} rows, durable", title_justify="left")
    for column in ("store", "headwater, changes kept", "by hand", "ratio"):
        table.add_column(column, justify="left" if column == "store" else "right")
    with tempfile.TemporaryDirectory(prefix="headwater-bench-") as root, running_server() as server:
        with ViewStore(Path(root) / "views.db") as store, closing(_sqlite(Path(root))) as db:
            table.add_row("SQLite", *rates(store.sink("bench", SCHEMA, "id"), lambda rows: _many(db, rows)))
        with PostgresStore(server.dsn) as store, psycopg.connect(server.dsn) as connection:
            connection.execute(MADE)
            table.add_row(
                "PostgreSQL",
                *rates(store.sink("bench", SCHEMA, "id"), lambda rows: _insert(connection, rows)),
            )
    console.print(table)
    console.print(sizes_and_reads())


def sizes_and_reads() -> Table:
    """Commit many rows and few into a view of a million rows in SQLite, and read it."""
    table = Table(title=f"a view of {LARGE:,} rows in SQLite, key of two columns", title_justify="left")
    for column in ("measure", "headwater"):
        table.add_column(column, justify="left" if column == "measure" else "right")
    with tempfile.TemporaryDirectory(prefix="headwater-bench-") as root:
        with ViewStore(Path(root) / "views.db") as store:
            sink = store.sink("large", "shop BIGINT, id BIGINT, name STRING, amount DOUBLE", ("shop", "id"))
            sink.begin()
            numbers = iter(range(1000))
            for first in range(0, LARGE, MANY):
                sink.commit(Batch(next(numbers), large(np.arange(first, first + MANY), 0)))
            chance = np.random.default_rng(7)
            for count, unit in ((MANY, "rows/s"), (100, "ms")):
                parts = [chance.choice(LARGE, count, replace=False) for _ in range(10)]
                taken = [
                    _timed(partial(sink.commit, Batch(next(numbers), large(part, turn))))
                    for turn, part in enumerate(parts, start=1)
                ]
                middle = float(np.median(taken))
                told = f"{count / middle / 1e6:.2f} M" if unit == "rows/s" else f"{middle * 1e3:.1f}"
                table.add_row(f"a commit of {count:,} rows, all changed", f"{told} {unit}")
        with open_views(Path(root) / "views.db") as views:
            _read(views["large"], table)
    return table


def _read(view: View, table: Table) -> None:
    keys = np.random.default_rng(8).integers(0, LARGE, 2000).tolist()
    got = [_timed(partial(view.get, (key % SHOPS, key))) for key in keys]
    table.add_row("get", f"{float(np.median(got)) * 1e3:.2f} ms")
    taken = _timed(lambda: view.scan().to_table())
    table.add_row("scan of all rows", f"{LARGE / taken / 1e6:.2f} M rows/s")
    last = view.sequence()
    taken = _timed(lambda: [*view.changes(since=last - 50_000)])
    table.add_row("changes", f"{50_000 / taken / 1e6:.2f} M/s")


def large(ids: Any, turn: int) -> pa.Table:
    names = pa.array([f"name {number} {turn}" for number in ids.tolist()])
    return pa.table({"shop": ids % SHOPS, "id": ids, "name": names, "amount": ids / 7})


def _timed(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def rates(sink: Sink, by_hand: Callable[[pa.Table], None]) -> tuple[str, str, str]:
    """Take the same batches in turns, and compare the medians."""
    sink.begin()
    taken: tuple[list[float], list[float]] = ([], [])
    for number, rows in enumerate(batches()):
        for side, work in enumerate((partial(sink.commit, Batch(number, rows)), partial(by_hand, rows))):
            start = time.perf_counter()
            work()
            taken[side].append(time.perf_counter() - start)
    ours, theirs = (ROWS / float(np.median(side[2:])) / 1e6 for side in taken)  # the first ones warm up
    return f"{ours:.3f} M/s", f"{theirs:.3f} M/s", f"{ours / theirs:.1f}×"


def batches() -> Iterator[pa.Table]:
    chance = np.random.default_rng(7)
    for _ in range(BATCHES):
        ids = chance.integers(0, KEYS, ROWS)
        names = pa.array([f"name {number}" for number in ids.tolist()])
        yield pa.table({"id": ids, "name": names, "amount": ids / 7})


def _sqlite(root: Path) -> sqlite3.Connection:
    db = sqlite3.connect(root / "plain.db")
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = FULL")
    db.execute(MADE)
    return db


def _many(db: sqlite3.Connection, rows: pa.Table) -> None:
    with db:
        db.executemany(UPSERT.format("?"), list(_tuples(rows)))


def _insert(db: psycopg.Connection, rows: pa.Table) -> None:
    with db.transaction(), db.cursor() as cursor:
        cursor.executemany(UPSERT.format("%s"), list(_tuples(rows)))


def _tuples(rows: pa.Table) -> Iterator[tuple[object, ...]]:
    return zip(*(column.to_pylist() for column in rows.columns), strict=True)


if __name__ == "__main__":
    main()
