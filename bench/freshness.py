"""How soon an appended event is visible in a view, with 1, 5 and 20 views, and how soon the first is."""

from __future__ import annotations

import os
import random
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console
from rich.table import Table

import headwater
from headwater import open_views
from headwater.log import Position, Producer

SAMPLES, WARM_UP = 60, 10
PROBE = "probe"
"""Whose events are waited for."""
KEYS = 200
FED = 100
"""Events a second that are appended meanwhile."""
GOALS = {1: 1.0, 5: 2.0, 20: 5.0}
SCHEMA = "id BIGINT, who STRING, amount DOUBLE, at TIMESTAMP"
HEAD = """
from headwater import Pipeline, latest, scan

shop = Pipeline("shop", log="file:./data")
shop.source("orders", "{schema}", event_time="at", key="who", lateness="0 seconds")

def add(state, event):
    before = state or {{"n": 0, "total": 0.0}}
    return {{"n": before["n"] + 1, "total": before["total"] + event["amount"]}}
"""
BODIES = (
    'orders.transform(scan(add, by="who", schema="n BIGINT, total DOUBLE"))',
    'orders.filter("amount >= 0").transform(latest(by="who"))',
    'orders.select("who", "id", "at").filter("id >= 0")',
    'orders.transform(latest(by="who"))',
    'orders.filter("amount >= 0").transform(scan(add, by="who", schema="n BIGINT, total DOUBLE"))',
)
"""Stateful and not, with code of the user's and without."""

console = Console(width=110)


def main() -> None:
    table = Table(title="freshness: append to visible, while 100 events/s come in", title_justify="left")
    for column in ("views", "by", "first row after start", "p50", "p99", "goal p99"):
        table.add_column(column, justify="left" if column == "by" else "right")
    for views in GOALS:
        for name, side in (("headwater", Ours), ("plain PySpark", Plain)):
            console.print(f"[dim]{time.strftime('%H:%M:%S')} freshness with {views} views, {name}[/dim]")
            goal = f"< {GOALS[views]:.0f} s" if side is Ours else ""
            with tempfile.TemporaryDirectory(prefix="headwater-bench-", ignore_cleanup_errors=True) as root:
                table.add_row(str(views), name, *figures(side(Path(root), views)), goal)
    console.print(table)


def figures(side: Ours | Plain) -> tuple[str, str, str]:
    """Return the time to the first row, the median and the 99th percentile, as they are printed."""
    try:
        first, taken = measure(side)
    except Ended as ended:  # so many queries do not start side by side on two cores
        console.print(f"[dim]{ended}[/dim]")
        return "fails", "", ""
    p50, p99 = (taken[int(len(taken) * share)] for share in (0.5, 0.99))
    console.print(
        f"[dim]first {first:.1f} s, p50 {p50:.2f} s, p99 {p99:.2f} s, worst {taken[-1]:.2f} s[/dim]"
    )
    return f"{first:.1f} s", f"{p50:.2f} s", f"{p99:.2f} s"


class Ended(Exception):
    """The process that is measured has ended by itself."""


class Ours:
    """A pipeline, run by the command line."""

    command = (sys.executable, "-m", "headwater", "run", "shop.py")

    def __init__(self, root: Path, views: int):
        self.root, self.count = root, views
        self._store = root / "data" / "pipelines" / "shop" / "views.db"
        (root / "shop.py").write_text(pipeline(views))

    def is_there(self) -> bool:
        """Tell whether the first view has rows."""
        if not self._store.exists():
            return False
        with open_views(self._store) as views:
            return "view_0" in views.names() and bool(views["view_0"].count())

    def opened(self) -> None:
        self._views = open_views(self._store)

    def wait(self, view: int, event: int, position: Position) -> None:
        """Return when a view has passed an event."""
        self._views[f"view_{view}"].get("who-1", wait_for=position, timeout=60.0)


class Plain:
    """The same views as queries of plain PySpark."""

    def __init__(self, root: Path, views: int):
        self.root, self.count = root, views
        self.command = (sys.executable, "-m", "bench.plain_views", str(root), str(views))

    def is_there(self) -> bool:
        """Tell whether the last view has rows: the queries start one after the other."""
        if not (self.root / "plain.db").exists():
            return False
        with suppress(sqlite3.OperationalError), closing(sqlite3.connect(self.root / "plain.db")) as db:
            found = db.execute(f"SELECT count(*) FROM view_{self.count - 1}")  # noqa: S608  # a number
            return bool(found.fetchone()[0])
        return False

    def opened(self) -> None:
        self._db = sqlite3.connect(self.root / "plain.db")

    def wait(self, view: int, event: int, position: Position) -> None:
        """Return when a view shows an event."""
        end = time.monotonic() + 60
        statement = f"SELECT id FROM view_{view} WHERE who = ?"  # noqa: S608  # a number
        while time.monotonic() < end:
            row = self._db.execute(statement, [PROBE]).fetchone()
            if row is not None and row[0] >= event:
                return
            time.sleep(0.005)
        raise TimeoutError("plain PySpark has not shown an event within a minute")


def pipeline(views: int) -> str:
    """Return a pipeline's file with some views."""
    nodes = (
        f'\n@shop.view(key="who")\ndef view_{n}(orders):\n    return {BODIES[n % len(BODIES)]}\n'
        for n in range(views)
    )
    return HEAD.format(schema=SCHEMA) + "".join(nodes)


def measure(side: Ours | Plain) -> tuple[float, list[float]]:
    """Return the seconds to the first row, and those of each sample from append to visible, sorted."""
    root = side.root
    with headwater.open(f"file:{root / 'data'}") as log:
        log.create_topic("orders", SCHEMA, key="who", event_time="at")
        with log.producer("orders", linger="1 milliseconds") as producer:
            for _ in range(10):  # a scan lets a row out when time has passed it
                send(producer)
                time.sleep(0.002)
            producer.flush()
            started = time.perf_counter()
            with (root / "run.log").open("w") as output:
                process = subprocess.Popen(
                    side.command, cwd=root, stdout=output, stderr=subprocess.STDOUT, env=_environment()
                )
            try:
                await_rows(side, process)
                first = time.perf_counter() - started
                return first, sampled(side, producer)
            finally:
                process.terminate()
                process.wait(60)


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}


def await_rows(side: Ours | Plain, process: subprocess.Popen[bytes]) -> None:
    while process.poll() is None:
        if side.is_there():
            return
        time.sleep(0.05)
    lines = (side.root / "run.log").read_text().splitlines()
    raise Ended(next((line for line in reversed(lines) if "Exception" in line or "error" in line), lines[-1]))


def sampled(side: Ours | Plain, producer: Producer) -> list[float]:
    """Append an event and wait until a view has passed it, again and again, each time another view."""
    ending, lock, taken = threading.Event(), threading.Lock(), []

    def feed() -> None:
        while not ending.wait(1 / FED):
            with lock:
                send(producer)

    feeder = threading.Thread(target=feed)
    feeder.start()
    try:
        side.opened()
        for sample in range(SAMPLES + WARM_UP):
            time.sleep(random.random() / 10)
            with lock:
                send(producer, PROBE, sample)
                start, position = time.perf_counter(), producer.flush()
            side.wait(random.randrange(side.count), sample, position)
            if sample >= WARM_UP:
                taken.append(time.perf_counter() - start)
    finally:
        ending.set()
        feeder.join()
    return sorted(taken)


def send(producer: Producer, who: str | None = None, number: int | None = None) -> None:
    number = random.randrange(1_000_000) if number is None else number
    who = who or f"who-{number % KEYS}"
    producer.send({"id": number, "who": who, "amount": 1.0, "at": datetime.now(UTC)})


if __name__ == "__main__":
    main()
