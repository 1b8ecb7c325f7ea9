"""Two views of a topic, one of which fails on some records; dies at a named point, or catches up."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import LongType

from headwater import Pipeline, latest
from headwater.sinks import crash


def shop(root: Path) -> Pipeline:
    pipeline = Pipeline("shop", log=f"file:{root / 'log'}")
    pipeline.source("orders", "id BIGINT, amount STRING, at TIMESTAMP", event_time="at")
    number = F.udf(int, LongType(), useArrow=False)

    @pipeline.view(key="id")
    def healthy(orders: DataFrame) -> DataFrame:
        return orders.transform(latest(by="id"))

    @pipeline.stream(on_error="dead_letter")
    def strict(orders: DataFrame) -> DataFrame:
        return orders.select("id", number("amount").alias("amount"))

    return pipeline


def die_at(wanted: str) -> None:
    """Kill this process and all of its children at a point."""

    def reached(name: str) -> None:
        if name == wanted:
            os.killpg(0, signal.SIGKILL)

    crash.watch(reached)


def main(root: Path, point: str) -> None:
    from headwater.engine.proof.verify import verify
    from headwater.engine.runner import Runner

    die_at(point)
    with Runner(shop(root)) as runner:
        runner.catch_up()
        assert all(verify(runner, name).ok for name in runner.nodes)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
