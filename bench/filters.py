"""What the code of nodes costs in a small micro-batch: ten views, with a filter each and without.

With ``BEFORE=DIR``, the ``src`` of another checkout, that is measured too, in turns.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import DataFrame
from rich.console import Console
from rich.table import Table

from bench.nodes import SCHEMA, measured, sides, write

VIEWS, ROWS, ROUNDS, WARM_UP = 10, 100, 40, 10
console = Console(width=110)


def main() -> None:
    table = Table(title=f"{VIEWS} views, micro-batches of {ROWS} rows", title_justify="left")
    for column in ("code", "version", "append to all views done, p50"):
        table.add_column(column)
    for code in ("none", "filter"):
        for name, source in sides().items():
            table.add_row(code, name, f"{measured(__file__, source, code):.3f} s")
    console.print(table)


def child(root: Path, code: str) -> None:
    """Append a few rows, and wait for all views, again and again."""
    import headwater
    from headwater import Pipeline
    from headwater.engine.runner import Runner
    from headwater.engine.spark.session import session

    shop = Pipeline("shop", log=f"file:{root / 'log'}")
    shop.source("events", SCHEMA, event_time="at")
    for number in range(VIEWS):
        shop.view(key="k")(view(number, filtered=code == "filter"))
    taken = []
    with headwater.open(shop.log) as log:
        log.create_topic("events", SCHEMA, event_time="at")
        with Runner(shop, spark=session(output=root / "spark.log")) as runner:
            for _ in range(ROUNDS + WARM_UP):
                write(log, ROWS)
                started = time.perf_counter()
                runner.catch_up()
                taken.append(time.perf_counter() - started)
    print(statistics.median(taken[WARM_UP:]))


def view(number: int, *, filtered: bool) -> Callable[[DataFrame], DataFrame]:
    from headwater import latest

    def newest(events: DataFrame) -> DataFrame:
        rows = events.filter(f"n % 20 <> {number}") if filtered else events
        return rows.transform(latest(by="k"))

    newest.__name__ = newest.__qualname__ = f"view_{number}"
    return newest


if __name__ == "__main__":
    if len(sys.argv) == 3:
        child(Path(sys.argv[1]), sys.argv[2])
    else:
        main()
