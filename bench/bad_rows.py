"""What rows cost on which user code fails: the search, until the view goes on, and until another does."""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from rich.console import Console
from rich.table import Table

from headwater import Pipeline
from headwater.engine.batch import failing_records
from headwater.engine.runner import Runner
from headwater.log import Position

CASES = [(bad, rows) for rows in (2_000, 100_000) for bad in (1, 10, 100)]
KINDS = ("Python", "pandas", "Spark")
SCHEMA = "id BIGINT, amount STRING"
PATIENCE = 300.0

console = Console(width=110)


def main() -> None:
    title = "rows that fail: the search for them, until the view goes on without them, another view's worst"
    table = Table(title=title, title_justify="left")
    for column in ("code", "bad rows", "of", "search", "view", "Spark jobs", "neighbour"):
        table.add_column(column, justify="left" if column == "code" else "right")
    for kind in KINDS:
        for bad, rows in CASES:
            with searches() as taken:
                view, jobs, stale = measure(kind, bad, rows)
            search = sum(taken)
            told = (f"{search:.1f} s", f"{view:.1f} s", str(jobs), f"{stale:.2f} s")
            table.add_row(kind, f"{bad:,}", f"{rows:,}", *told)
            console.print(f"[dim]{kind}, {bad} of {rows:,}: {', '.join(told)}[/dim]")
    console.print(table)


def measure(kind: str, bad: int, rows: int) -> tuple[float, int, float]:
    """Return the seconds until the view goes on, the jobs of Spark's, and how stale its neighbour was."""
    with (
        tempfile.TemporaryDirectory(prefix="headwater-bench-") as root,
        Runner(shop(kind, Path(root))) as runner,
        running(runner),
        runner.log.producer("orders", linger="1 milliseconds") as producer,
    ):
        producer.send_batch([row(number) for number in range(100)])
        producer.flush()
        passed(runner, "strict", runner.log.resolve("orders", "latest"), PATIENCE)
        before, begun = _jobs(runner), time.perf_counter()
        step = rows // bad
        producer.send_batch([row(number, number % step == step // 2) for number in range(rows)])
        producer.flush()
        end, worst = runner.log.resolve("orders", "latest"), 0.0
        while not passed(runner, "strict", end, 0.0):
            producer.send(row(-1))
            producer.flush()
            sent, at = time.perf_counter(), runner.log.resolve("orders", "latest")
            assert passed(runner, "healthy", at, PATIENCE)
            worst = max(worst, time.perf_counter() - sent)
        return time.perf_counter() - begun, _jobs(runner) - before, worst


def shop(kind: str, root: Path) -> Pipeline:
    """Return two views of one topic, one of which fails on some rows."""
    pipeline = Pipeline("shop", log=f"file:{root / 'data'}")
    pipeline.source("orders", SCHEMA)

    @pipeline.view(key="id")
    def healthy(orders: DataFrame) -> DataFrame:
        return orders

    @pipeline.view(key="id", on_error="dead_letter")
    def strict(orders: DataFrame) -> DataFrame:
        return orders.select("id", _number(kind).alias("amount"))

    return pipeline


def _number(kind: str) -> Column:
    if kind == "Spark":
        return F.col("amount").cast("bigint")
    python, pandas = F.udf(int, "bigint", useArrow=False), F.pandas_udf(_numbers, "bigint")
    return python("amount") if kind == "Python" else pandas("amount")


def _numbers(texts: pd.Series) -> pd.Series:
    return texts.map(int)


def row(number: int, bad: bool = False) -> dict[str, Any]:
    return {"id": number, "amount": "two" if bad else str(number)}


def passed(runner: Runner, view: str, at: Position, seconds: float) -> bool:
    """Tell whether a view has come as far as a position, or does within some seconds."""
    end = time.monotonic() + seconds
    while True:
        reached = runner.store.view(view).position() if view in runner.store.names() else ()
        if any(each.passed(at) for each in reached):
            return True
        if time.monotonic() >= end:
            return False
        time.sleep(0.01)


@contextmanager
def searches() -> Iterator[list[float]]:
    """Take the time of each search for records."""
    taken: list[float] = []
    find = failing_records.find

    def timed(*given: Any) -> Any:
        begun = time.perf_counter()
        try:
            return find(*given)
        finally:
            taken.append(time.perf_counter() - begun)

    failing_records.find = timed
    try:
        yield taken
    finally:
        failing_records.find = find


@contextmanager
def running(runner: Runner) -> Iterator[None]:
    thread = threading.Thread(target=runner.run, args=(lambda: None,))
    thread.start()
    try:
        yield
    finally:
        runner.stop()
        thread.join()


def _jobs(runner: Runner) -> int:
    scheduler: Any = runner.spark.sparkContext._jsc.sc().dagScheduler()
    return int(scheduler.numTotalJobs())


if __name__ == "__main__":
    main()
