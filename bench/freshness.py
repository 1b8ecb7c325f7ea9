"""How soon an appended event is visible in a view, with 1, 5 and 20 views, and how soon the first is."""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
import threading
import time
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console
from rich.table import Table

import headwater
from headwater.log import Producer
from headwater.sinks.views import open_views

SAMPLES = 100
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
    for column in ("views", "first row after start", "p50", "p99", "goal p99"):
        table.add_column(column, justify="right")
    for views in GOALS:
        console.print(f"[dim]{time.strftime('%H:%M:%S')} freshness with {views} views[/dim]")
        with tempfile.TemporaryDirectory(prefix="headwater-bench-") as root:
            first, taken = measure(Path(root), views)
        p50, p99 = (taken[int(len(taken) * share)] for share in (0.5, 0.99))
        table.add_row(str(views), f"{first:.1f} s", f"{p50:.2f} s", f"{p99:.2f} s", f"< {GOALS[views]:.0f} s")
    console.print(table)


def pipeline(views: int) -> str:
    """Return a pipeline's file with some views."""
    nodes = (
        f'\n@shop.view(key="who")\ndef view_{n}(orders):\n    return {BODIES[n % len(BODIES)]}\n'
        for n in range(views)
    )
    return HEAD.format(schema=SCHEMA) + "".join(nodes)


def measure(root: Path, views: int) -> tuple[float, list[float]]:
    """Return the seconds to the first row, and those of each sample from append to visible, sorted."""
    (root / "shop.py").write_text(pipeline(views))
    with headwater.open(f"file:{root / 'data'}") as log:
        log.create_topic("orders", SCHEMA, key="who", event_time="at")
        with log.producer("orders", linger="1 milliseconds") as producer:
            for _ in range(10):  # a scan lets a row out when time has passed it
                send(producer)
                time.sleep(0.002)
            producer.flush()
            started = time.perf_counter()
            with (root / "run.log").open("w") as output:
                run = [sys.executable, "-m", "headwater", "run", "shop.py"]
                process = subprocess.Popen(run, cwd=root, stdout=output, stderr=subprocess.STDOUT)
            try:
                await_rows(root, process)
                first = time.perf_counter() - started
                return first, sampled(root, producer, views)
            finally:
                process.terminate()
                process.wait(60)


def await_rows(root: Path, process: subprocess.Popen[bytes]) -> None:
    store = root / "data" / "pipelines" / "shop" / "views.db"
    while process.poll() is None:
        if store.exists():
            with open_views(store) as views:
                if "view_0" in views.names() and views["view_0"].count():
                    return
        time.sleep(0.05)
    raise SystemExit((root / "run.log").read_text())


def sampled(root: Path, producer: Producer, count: int) -> list[float]:
    """Append an event and wait until a view has passed it, again and again, each time another view."""
    ending, lock, taken = threading.Event(), threading.Lock(), []

    def feed() -> None:
        while not ending.wait(1 / FED):
            with lock:
                send(producer)

    feeder = threading.Thread(target=feed)
    feeder.start()
    try:
        with open_views(root / "data" / "pipelines" / "shop" / "views.db") as views:
            for sample in range(SAMPLES + 10):
                view = views[f"view_{random.randrange(count)}"]
                time.sleep(random.random() / 10)
                with lock:
                    send(producer)
                    start, position = time.perf_counter(), producer.flush()
                view.get("who-1", wait_for=position, timeout=60.0)
                if sample >= 10:  # the first ones warm up
                    taken.append(time.perf_counter() - start)
    finally:
        ending.set()
        feeder.join()
    return sorted(taken)


def send(producer: Producer) -> None:
    number = random.randrange(1_000_000)
    who, now = f"who-{number % KEYS}", datetime.now(UTC)
    producer.send({"id": number, "who": who, "amount": 1.0, "at": now})


if __name__ == "__main__":
    main()
