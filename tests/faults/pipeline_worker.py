"""A pipeline that runs until it is killed, dies or pauses at named points of commits, or has caught up."""

from __future__ import annotations

import itertools
import os
import signal
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from headwater import Pipeline, agg, dedup, joins, latest, scan, windows
from headwater.pipeline import targets
from headwater.sinks import crash


def add(state: dict[str, Any] | None, event: dict[str, Any]) -> dict[str, Any]:
    before = state or {"n": 0, "total": 0}
    return {"n": before["n"] + 1, "total": before["total"] + event["amount"]}


def shop(root: Path, database: str) -> Pipeline:
    """Return a pipeline with a derived topic, views in SQLite, and a view and a sink in PostgreSQL.

    Without a database, that view is in SQLite too, and the sink is a directory of files.
    """
    pipeline = Pipeline("shop", log=f"file:{root / 'log'}")
    schema = "id BIGINT, who STRING, amount BIGINT, at TIMESTAMP"
    pipeline.source("orders", schema, event_time="at", lateness="1 hour", key="who")
    pipeline.source(
        "payments", "id BIGINT, paid TIMESTAMP", event_time="paid", lateness="1 hour", idle="3 seconds"
    )
    pipeline.table(
        "rates", "who STRING, rate BIGINT, since TIMESTAMP", key="who", event_time="since", idle="3 seconds"
    )

    @pipeline.stream(key="who")
    def unique(orders: DataFrame) -> DataFrame:
        return orders.transform(dedup(on="id", within="1 day"))

    @pipeline.view(key="who", store=database or None)
    def totals(unique: DataFrame) -> DataFrame:
        return unique.transform(scan(add, by="who", schema="n BIGINT, total BIGINT"))

    @pipeline.view(key="who")
    def newest(orders: DataFrame) -> DataFrame:
        return orders.transform(latest(by="who"))

    @pipeline.view(key=["who", "window_start"])
    def by_hour(unique: DataFrame) -> DataFrame:
        total = agg.sum("amount")
        return unique.transform(windows.tumbling("1 hour", by="who", total=total, late="side"))

    @pipeline.view(key="id")
    def rated(unique: DataFrame, rates: DataFrame) -> DataFrame:
        return unique.transform(joins.as_of(rates, on="who")).select("id", "rate")

    @pipeline.view(key="id")
    def paid(unique: DataFrame, payments: DataFrame) -> DataFrame:
        found = unique.transform(joins.within(payments, on="id", after="10 minutes", how="left"))
        return found.select("id", F.col("paid").isNotNull().alias("paid"))

    @pipeline.sink(
        targets.postgres(database, "archive", "id") if database else targets.parquet(root / "files")
    )
    def archived(unique: DataFrame) -> DataFrame:
        return unique.select("id", "who", "amount")

    return pipeline


def die_at(count: int) -> None:
    """Kill this process and all of its children at the ``count``-th point."""
    left = count

    def reached(name: str) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            os.write(2, f"died at {name}\n".encode())
            os.killpg(0, signal.SIGKILL)

    crash.watch(reached)


def pause_at(every: int) -> None:
    """Let this process and all of its children stand still at every so many-th point, until they go on."""
    count = itertools.count(1)

    def reached(name: str) -> None:
        if next(count) % every == 0:
            os.write(2, f"paused at {name}\n".encode())
            os.killpg(0, signal.SIGSTOP)

    crash.watch(reached)


def main(root: Path, task: str, database: str) -> None:
    from headwater.engine.proof.verify import verify
    from headwater.engine.runner import Runner

    with Runner(shop(root, database), limit=2000) as runner:
        if task == "catch up":
            return runner.catch_up()
        if task == "finish":
            runner.catch_up()
            proved = [name for name in runner.nodes if name != "archived"]
            assert all(verify(runner, name).ok for name in proved), proved
            return None
        if task.startswith("pause"):
            pause_at(int(task.removeprefix("pause")))
        elif int(task):
            die_at(int(task))
        runner.run(lambda: None)
        raise SystemExit("; ".join(str(each.error) for each in runner.nodes.values()))


if __name__ == "__main__":
    for root in sys.argv[1].split(os.pathsep):
        main(Path(root), sys.argv[2], sys.argv[3])
