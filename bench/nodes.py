"""How much a query gets through with 1, 5, 25 and 50 nodes, each a window over the same topic.

With ``BEFORE=DIR``, the ``src`` of another checkout, that is measured too, in turns.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.table import Table

NODES = (1, 5, 25, 50)
ROWS, KEYS = 300_000, 2_000
SCHEMA = "k STRING, n BIGINT, at TIMESTAMP"
console = Console(width=110)


def main() -> None:
    table = Table(title=f"{ROWS:,} rows through windows that share a query", title_justify="left")
    for column in ("nodes", "version", "seconds", "rows/s", "node-rows/s"):
        table.add_column(column, justify="left" if column == "version" else "right")
    for nodes in NODES:
        for name, source in sides().items():
            seconds = measured(__file__, source, nodes)
            console.print(f"[dim]{time.strftime('%H:%M:%S')} {nodes} nodes, {name}: {seconds:.1f} s[/dim]")
            rates = (f"{rate:,.0f}" for rate in (ROWS / seconds, nodes * ROWS / seconds))
            table.add_row(str(nodes), name, f"{seconds:.1f}", *rates)
    console.print(table)


def sides() -> dict[str, Path]:
    """Return the source of this version, and of the one before if it is given."""
    before = {"before": Path(os.environ["BEFORE"])} if "BEFORE" in os.environ else {}
    return {"now": Path(__file__).parents[1] / "src", **before}


def measured(script: str, source: Path, case: object) -> float:
    """Return the seconds that a bench prints which is run in a process of its own."""
    with tempfile.TemporaryDirectory(prefix="headwater-bench-") as root:
        done = subprocess.run(
            [sys.executable, script, root, str(case)],
            env={**os.environ, "PYTHONPATH": f"{source}:{Path(script).parents[1]}"},
            capture_output=True,
            text=True,
            timeout=1200,
        )
    if done.returncode:
        raise RuntimeError(done.stderr)
    return float(done.stdout.split()[-1])


def child(root: Path, nodes: int) -> None:
    """Write the rows, and run a pipeline over them."""
    import headwater
    from headwater import Pipeline, agg, windows
    from headwater.engine.runner import Runner
    from headwater.engine.spark.session import session

    shop = Pipeline("shop", log=f"file:{root / 'log'}")
    shop.source("events", SCHEMA, event_time="at", lateness="10 seconds")
    for number in range(nodes):

        def window(events: object) -> object:
            counted = windows.tumbling("1 minute", by="k", rows=agg.count(), total=agg.sum("n"))
            return events.transform(counted)  # type: ignore[attr-defined]

        window.__name__ = window.__qualname__ = f"window_{number}"
        shop.view(key=["k", "window_start"])(window)
    spark = session(output=root / "spark.log")
    with headwater.open(shop.log) as log:
        log.create_topic("events", SCHEMA, event_time="at")
        write(log, 1000)
        with Runner(shop, spark=spark) as runner:
            runner.catch_up()  # the first micro-batch starts everything
            write(log, ROWS)
            started = time.perf_counter()
            runner.catch_up()
            print(time.perf_counter() - started)


def write(log: object, rows: int) -> None:
    chance = np.random.default_rng(rows)
    keys = pa.array([f"key {number}" for number in chance.integers(0, KEYS, rows)])
    times = pa.array(np.sort(chance.integers(0, 600_000_000, rows)) + 1_700_000_000_000_000 + rows)
    table = pa.table({"k": keys, "n": np.arange(rows), "at": times.cast(pa.timestamp("us", "UTC"))})
    with log.producer("events") as producer:  # type: ignore[attr-defined]
        for batch in table.to_batches(max_chunksize=20_000):
            producer.send_batch(batch)


if __name__ == "__main__":
    if len(sys.argv) == 3:
        child(Path(sys.argv[1]), int(sys.argv[2]))
    else:
        main()
