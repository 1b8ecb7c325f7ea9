"""A pipeline with its home in a bucket that runs until it dies at a point of a commit, or has caught up."""

from __future__ import annotations

import sys
from typing import Any

from pyspark.sql import DataFrame

from headwater import Pipeline, agg, dedup, scan, windows


def add(state: dict[str, Any] | None, event: dict[str, Any]) -> dict[str, Any]:
    before = state or {"n": 0, "total": 0}
    return {"n": before["n"] + 1, "total": before["total"] + event["amount"]}


def shop(log: str, home: str, database: str) -> Pipeline:
    """Return a pipeline with derived topics, and with views in PostgreSQL."""
    pipeline = Pipeline("shop", log=log, home=home, views=database)
    schema = "id BIGINT, who STRING, amount BIGINT, at TIMESTAMP"
    pipeline.source("orders", schema, event_time="at", lateness="1 hour", key="who")

    @pipeline.stream(key="who")
    def unique(orders: DataFrame) -> DataFrame:
        return orders.transform(dedup(on="id", within="1 day"))

    @pipeline.view(key="who")
    def totals(unique: DataFrame) -> DataFrame:
        return unique.transform(scan(add, by="who", schema="n BIGINT, total BIGINT"))

    @pipeline.view(key=["who", "window_start"])
    def by_hour(unique: DataFrame) -> DataFrame:
        return unique.transform(windows.tumbling("1 hour", by="who", total=agg.sum("amount"), late="side"))

    return pipeline


def main(task: str, log: str, home: str, database: str) -> None:
    from headwater.engine.proof.verify import verify
    from headwater.engine.runner import Runner

    with Runner(shop(log, home, database), limit=2000) as runner:
        if task == "finish":
            runner.catch_up()
            assert all(verify(runner, name).ok for name in runner.nodes)
            return
        if task == "batches":
            runner.catch_up()
            print("caught up", flush=True)
            sys.stdin.readline()
            runner.catch_up()
            return
        from pipeline_worker import die_at  # beside this program, which is run as a script

        die_at(int(task))
        runner.run(lambda: None)
        raise SystemExit("; ".join(str(each.error) for each in runner.nodes.values()))


if __name__ == "__main__":
    main(*sys.argv[1:])
