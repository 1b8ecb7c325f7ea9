"""Runs a pipeline, or spreads a node of it over other buckets, and may kill itself in the middle."""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

from pyspark.sql import DataFrame

import headwater
from headwater import Pipeline, agg, latest, windows
from headwater.sinks import crash


def shop(root: str) -> Pipeline:
    """Return a pipeline with two states."""
    pipeline = Pipeline("shop", log=f"file:{root}/log", home=f"{root}/home")
    pipeline.source("orders", "who STRING, n BIGINT, at TIMESTAMP", event_time="at", key="who")

    @pipeline.view(key="who")
    def newest(orders: DataFrame) -> DataFrame:
        return orders.transform(latest(by="who"))

    @pipeline.view(key=["who", "window_start"])
    def minutes(orders: DataFrame) -> DataFrame:
        return orders.transform(windows.tumbling("1 minute", by="who", total=agg.sum("n")))

    return pipeline


def kill(*_: Any) -> None:
    """End as ``kill -9`` does."""
    os.kill(os.getpid(), signal.SIGKILL)


def main(root: str, task: str, node: str = "", count: str = "", point: str = "") -> None:
    pipeline = shop(root)
    if task == "run":
        headwater.run(pipeline, until_caught_up=True)
        assert all(verdict.ok and verdict.equal for verdict in headwater.verify(pipeline))
        return
    if point != "moving":
        crash.watch(lambda reached: kill() if reached == point else None)
    report = kill if point == "moving" else lambda moved, total: None
    headwater.rescale(pipeline, node, int(count), report=report)


if __name__ == "__main__":
    main(*sys.argv[1:])
