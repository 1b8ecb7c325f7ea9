"""What capturing a SQLite table costs the application that writes it, and how fast its changes are read.

The same statements on the same table, without triggers and with them, in turns within one run.
"""

from __future__ import annotations

import sqlite3
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from headwater.capture.sqlite.source import SqliteSource

ROWS, TURNS = 100_000, 3
COLUMNS = "id INTEGER PRIMARY KEY, name TEXT, email TEXT, amount REAL, at INTEGER, note TEXT"
INSERT = "INSERT INTO t VALUES (?, ?, ?, ?, ?, ?)"
SHAPES = {"number as key": "", "and a unique column": "CREATE UNIQUE INDEX u ON t (email)"}
console = Console(width=110)


@dataclass(frozen=True)
class Work:
    """Statements of one kind, some in each transaction."""

    title: str
    statement: str
    rows: int
    together: int


WORK = (
    Work("insert, 1,000 in a transaction", INSERT, ROWS, 1000),
    Work("insert, 10 in a transaction", INSERT, ROWS // 5, 10),
    Work("insert, each its own transaction", INSERT, ROWS // 20, 1),
    Work(
        "update, 1,000 in a transaction", "UPDATE t SET amount = ?4 + 1, note = ?6 WHERE id = ?1", ROWS, 1000
    ),
    Work("delete, 1,000 in a transaction", "DELETE FROM t WHERE id = ?1 AND ?6 <> 0", ROWS, 1000),
)


def main() -> None:
    table = Table(title="SQLite captured: rows a second (WAL, synchronous=NORMAL)", title_justify="left")
    for column in ("table", "work", "without", "with triggers", "ratio"):
        table.add_column(column, justify="left" if column in ("table", "work") else "right")
    for shape, index in SHAPES.items():
        for work in WORK:
            plain, captured = best(work, index)
            table.add_row(shape, work.title, f"{plain:,.0f}", f"{captured:,.0f}", f"{captured / plain:.2f}")
    console.print(table)
    console.print(f"changes read into Arrow: {reading():,.0f} rows a second, of 6 columns")


def best(work: Work, index: str) -> tuple[float, float]:
    """Return the best rates of some turns, without triggers and with them."""
    turns = [(rate(work, index, False), rate(work, index, True)) for _ in range(TURNS)]
    return max(plain for plain, _ in turns), max(captured for _, captured in turns)


def rate(work: Work, index: str, captured: bool) -> float:
    with tempfile.TemporaryDirectory(prefix="headwater-bench-") as folder:
        path = Path(folder) / "shop.db"
        with closing(made(path, index)) as db:
            if "INSERT" not in work.statement:
                write(db, Work("", INSERT, work.rows, 10_000), values(work.rows))
            if captured:
                with SqliteSource(path, "bench") as source:
                    source.begin(["t"], None)
            rows = values(work.rows)
            return work.rows / taken(lambda: write(db, work, rows))


def made(path: Path, index: str) -> sqlite3.Connection:
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("PRAGMA journal_mode=WAL")
    db.execute("PRAGMA synchronous=NORMAL")
    db.execute(f"CREATE TABLE t ({COLUMNS})")
    if index:
        db.execute(index)
    return db


def values(count: int) -> list[tuple[object, ...]]:
    return [(n, f"name {n}", f"someone-{n}@example.org", n / 7, n * 1000, "x" * 40) for n in range(count)]


def write(db: sqlite3.Connection, work: Work, rows: list[tuple[object, ...]]) -> None:
    for start in range(0, work.rows, work.together):
        db.execute("BEGIN")
        db.executemany(work.statement, rows[start : start + work.together])
        db.execute("COMMIT")


def taken(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def reading() -> float:
    """Return how many changes a second are read."""
    with tempfile.TemporaryDirectory(prefix="headwater-bench-") as folder:
        path = Path(folder) / "shop.db"
        with closing(made(path, "")) as db, SqliteSource(path, "bench") as source:
            source.begin(["t"], None)
            write(db, WORK[0], values(ROWS))
            return ROWS / taken(lambda: drain(source))


def drain(source: SqliteSource) -> None:
    while source.read(0).changes:
        pass


if __name__ == "__main__":
    main()
