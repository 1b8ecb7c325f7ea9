"""Why the driver computes small micro-batches itself: the same by the driver and by workers, in turns."""

from __future__ import annotations

import shutil
import sys
import tempfile
import uuid
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from rich.console import Console
from rich.table import Table

import headwater
from headwater import Pipeline, agg, targets, windows
from headwater.engine.batch import micro_batch
from headwater.engine.runner import Runner
from headwater.engine.spark.session import session

SIZES = (100, 1_000, 20_000, 60_000)
BATCHES, WARM_UP, ROUNDS = 12, 2, 2
KEYS = 10_000
SCHEMA = "k STRING, n BIGINT, at TIMESTAMP"
console = Console(width=110)


def main() -> None:
    root = Path(tempfile.mkdtemp(prefix="headwater-bench-"))
    spark = session(output=root / "spark.log")
    table = Table(title="a micro-batch of a window, median", title_justify="left")
    for column in ("records", "by the driver", "by Spark's workers", "ratio"):
        table.add_column(column, justify="right")
    try:
        for size in SIZES:
            here, there = measured(root, spark, size)
            table.add_row(f"{size:,}", f"{here:.3f} s", f"{there:.3f} s", f"{there / here:.1f}×")
    finally:
        spark.stop()
        shutil.rmtree(root, ignore_errors=True)
    console.print(table)


def measured(root: Path, spark: SparkSession, size: int) -> tuple[float, float]:
    """Return the seconds of a micro-batch by the driver and by workers."""
    url = f"file:{root / str(size)}"
    with headwater.open(url) as log:
        log.create_topic("events", SCHEMA, event_time="at", key="k")
        with log.producer("events") as producer:
            for batch in events(size * BATCHES).to_batches(max_chunksize=size):
                producer.send_batch(batch)
                producer.flush()
    taken: tuple[list[float], list[float]] = ([], [])
    for _ in range(ROUNDS):
        for side, few in enumerate((1 << 62, 0)):
            micro_batch.FEW = few
            taken[side].extend(batches(Pipeline("bench", log=url, home=root / uuid.uuid4().hex), spark, size))
    return float(np.median(taken[0])), float(np.median(taken[1]))


def batches(pipeline: Pipeline, spark: SparkSession, size: int) -> list[float]:
    """Run a window over all events; return the seconds of its micro-batches, but for the first ones."""
    pipeline.source("events", SCHEMA, event_time="at", key="k")

    @pipeline.sink(targets.foreach(lambda rows, number: None))
    def counted(events: DataFrame) -> DataFrame:
        return events.transform(windows.tumbling("1 minute", by="k", rows=agg.count()))

    with Runner(pipeline, spark=spark, limit=size) as runner:
        runner.catch_up()
        (query,) = runner.queries.values()
        assert query.spark is not None
        done = [each.durationMs for each in query.spark.recentProgress if "addBatch" in each.durationMs]
    return [each["addBatch"] / 1000 for each in done][WARM_UP:]


def events(count: int) -> pa.Table:
    keys = np.random.default_rng(7).integers(0, KEYS, count)
    at = pa.array(1_700_000_000_000_000 + np.arange(count) * 1000).cast(pa.timestamp("us", "UTC"))
    return pa.table({"k": [f"key-{key}" for key in keys.tolist()], "n": np.arange(count), "at": at})


if __name__ == "__main__":
    sys.exit(main())
