"""Windows and joins beside Spark's own: the same events, the same session, the same run.

Ours is a pipeline as users have it, whose node writes nowhere: records read, routed and stepped, states
stored, results in the driver. Spark's is its own operator in a stream over the same topic, its results
nowhere. What is compared is the time of micro-batches (``addBatch``) over all rows, the best of three
rounds in turns. Spark loses late rows, and ours keeps them.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from rich.console import Console
from rich.table import Table

import headwater
from headwater import Pipeline, agg, joins, targets, windows
from headwater.engine.runner import Runner
from headwater.engine.spark.session import session

ROWS = 1_000_000
JOINED = 200_000
"""Rows of each side of a join of streams; Spark's own is slow."""
VERSIONS = 100_000
STEP, STEPS = 20_000, 100
"""Rows of a micro-batch, and how many of them a state grows by."""
FIRST = 1_700_000_000_000_000
SCHEMA = "k STRING, n BIGINT, at TIMESTAMP"
KEPT = {"n": agg.count(), "total": agg.sum("n")}
ROUNDS = 3
console = Console(width=110)


def main() -> None:
    root = Path(tempfile.mkdtemp(prefix="headwater-bench-"))
    spark = session(output=root / "spark.log")
    try:
        Bench(root, spark).run()
    finally:
        spark.stop()
        shutil.rmtree(root, ignore_errors=True)


class Bench:
    def __init__(self, root: Path, spark: SparkSession):
        self.root, self.spark, self.url = root, spark, f"file:{root / 'log'}"
        self.results = Table(title="windows and joins, events a second", title_justify="left")
        for column in ("measure", "headwater", "Spark's own", "ratio", "goal"):
            self.results.add_column(column, justify="left" if column == "measure" else "right")
        self.growth = Table(title="a micro-batch of 20 k rows, as the state grows", title_justify="left")
        for column in ("operator", "2 % of the state", "all of it", "ratio"):
            self.growth.add_column(column, justify="left" if column == "operator" else "right")

    def run(self) -> None:
        with headwater.open(self.url) as self.log:
            self._write("few", ROWS, 10_000)
            self._write("many", ROWS, 1_000_000)
            self._write("late", ROWS, 10_000, late=0.01)
            for name in ("left", "right"):
                self._write(name, JOINED, 10_000)
            self._write("versions", VERSIONS, 10_000, table=True)
            self._write("steps", STEP * STEPS, 10_000, every=10)
            self.windows()
            self.joins()
            self.grow()
        console.print(self.results)
        console.print(self.growth)

    # What is measured

    def windows(self) -> None:
        minute = F.window("at", "1 minute")
        tumbling = windows.tumbling("1 minute", by="k", **KEPT)
        self.window("tumbling, 10 k keys", tumbling, "few", minute, "≥ 1×")
        self.window("tumbling, 1 M keys", tumbling, "many", minute, "≥ 1×")
        corrected = windows.tumbling("1 minute", by="k", late="correct", keep="1 hour", **KEPT)
        self.window("tumbling, 10 micro-batches", tumbling, "few", limit=ROWS // 10)
        self.window("  and late rows may correct it", corrected, "few", limit=ROWS // 10)
        self.window("  and 1 % late rows do correct it", corrected, "late", limit=ROWS // 10)
        hopping = windows.hopping("5 minutes", "1 minute", by="k", **KEPT)
        self.window("hopping 5 min / 1 min", hopping, "few", F.window("at", "5 minutes", "1 minute"), "≥ 1×")
        session = windows.session("10 seconds", by="k", **KEPT)
        self.window("session, gap 10 s", session, "few", F.session_window("at", "10 seconds"), "≥ 1×")
        self.window("sliding 10 s", windows.sliding("10 seconds", by="k", **KEPT), "few")

    def window(
        self, measure: str, door: Any, topic: str, own: Any = None, goal: str = "", limit: int = ROWS
    ) -> None:
        def spark() -> DataFrame:
            rows = self._stream(topic).groupBy(own, "k")
            return rows.agg(F.count("*").alias("c"), F.sum("n").alias("s"))

        node = self._node(topic, door)
        own_query = spark if own is not None else None
        self.beside(measure, ROWS, lambda: sum(self._batches(node, limit)), own_query, goal)

    def joins(self) -> None:
        span = {"before": "5 seconds", "after": "5 seconds"}

        def within(pipeline: Pipeline) -> None:
            for name in ("left", "right"):
                pipeline.source(name, SCHEMA, event_time="at", key="k")

            @pipeline.sink(targets.foreach(_nowhere))
            def joined(left: DataFrame, right: DataFrame) -> DataFrame:
                return left.transform(joins.within(right, on="k", prefix="r_", **span))

        def as_of(pipeline: Pipeline) -> None:
            pipeline.source("few", SCHEMA, event_time="at", key="k")
            pipeline.table("versions", SCHEMA, event_time="at", key="k")

            @pipeline.sink(targets.foreach(_nowhere))
            def joined(few: DataFrame, versions: DataFrame) -> DataFrame:
                return few.transform(joins.as_of(versions, on="k", prefix="v_"))

        both = 2 * JOINED
        self.beside("within 5 seconds", both, lambda: sum(self._batches(within)), self._interval_join, "≥ 8×")
        self.beside("as_of, 100 k versions", ROWS + VERSIONS, lambda: sum(self._batches(as_of)))

    def grow(self) -> None:
        """Let states grow by a micro-batch after another, and compare the late ones with early ones."""
        hour = windows.tumbling("1 second", by="k", late="correct", keep="1 hour", **KEPT)
        nodes = {
            "tumbling, 200 k windows kept": self._node("steps", hour),
            "scan, 10 k keys": self._node("steps", headwater.scan(_add, by="k", schema="total BIGINT")),
            "within, 2 × 2 M rows kept": _all_kept,
        }
        for name, node in nodes.items():
            taken = self._batches(node, limit=STEP)[1:]  # in the first one workers start
            early, late = (float(np.median(part)) for part in (taken[1:6], taken[-6:-1]))
            self.growth.add_row(name, f"{early:.2f} s", f"{late:.2f} s", f"{late / early:.1f}×")

    def beside(
        self,
        measure: str,
        rows: int,
        ours: Callable[[], float],
        own: Callable[[], DataFrame] | None = None,
        goal: str = "",
    ) -> None:
        """Measure both in turns, and compare the best of each."""
        taken: tuple[list[float], list[float]] = ([], [])
        for number in range(ROUNDS):
            taken[0].append(ours())
            if own is not None:
                taken[1].append(self._drain(own()))
            told = " / ".join(f"{part[-1]:.1f} s" for part in taken if part)
            console.print(f"[dim]{time.strftime('%H:%M:%S')} {measure}, round {number + 1}: {told}[/dim]")
        mine = rows / min(taken[0]) / 1e6
        other = rows / min(taken[1]) / 1e6 if own is not None else None
        told = (f"{other:.3f} M/s", f"{mine / other:.1f}×") if other is not None else ("", "")
        self.results.add_row(measure, f"{mine:.3f} M/s", *told, goal)

    # How

    def _write(
        self, topic: str, count: int, keys: int, *, late: float = 0.0, every: int = 1000, table: bool = False
    ) -> None:
        """Write events ``every`` so many microseconds, some of them ten minutes late."""
        chance, number = np.random.default_rng(len(topic)), np.arange(count)
        cleanup = "compact" if table else "delete"
        self.log.create_topic(topic, SCHEMA, key="k", event_time="at", cleanup=cleanup)
        spread = ROWS * 1000 // count if table else every
        at = FIRST + number * spread + chance.integers(0, spread, count)
        at -= (chance.random(count) < late) * 600_000_000
        names = [f"key-{key}" for key in chance.integers(0, keys, count).tolist()]
        with self.log.producer(topic) as producer:
            times = pa.array(at).cast(pa.timestamp("us", "UTC"))
            producer.send_batch(pa.table({"k": names, "n": number, "at": times}))

    def _node(self, topic: str, door: Any) -> Callable[[Pipeline], None]:
        def declare(pipeline: Pipeline) -> None:
            pipeline.source("events", SCHEMA, event_time="at", key="k", topic=topic)

            @pipeline.sink(targets.foreach(_nowhere))
            def made(events: DataFrame) -> DataFrame:
                return events.transform(door)

        return declare

    def _batches(self, declare: Callable[[Pipeline], None], limit: int = ROWS) -> list[float]:
        """Run a pipeline over all there is; return the seconds of its micro-batches."""
        place = self.root / "pipelines" / uuid.uuid4().hex
        pipeline = Pipeline("bench", log=self.url, home=place)
        declare(pipeline)
        with Runner(pipeline, spark=self.spark, limit=limit) as runner:
            runner.catch_up()
            (query,) = runner.queries.values()
            assert query.spark is not None
            taken = _seconds(query.spark.recentProgress)
        shutil.rmtree(place, ignore_errors=True)
        return taken

    def _stream(self, topic: str) -> DataFrame:
        options = {"url": self.url, "topic": topic}
        stream = self.spark.readStream.format("headwater").options(**options).load()
        return stream.withWatermark("at", "0 seconds")

    def _interval_join(self) -> DataFrame:
        near = "l.k = r.k AND r.at >= l.at - INTERVAL 5 SECONDS AND r.at <= l.at + INTERVAL 5 SECONDS"
        return self._stream("left").alias("l").join(self._stream("right").alias("r"), F.expr(near))

    def _drain(self, rows: DataFrame) -> float:
        """Run a query over all there is; return the seconds of its batches, without its start."""
        place = self.root / "checkpoints" / uuid.uuid4().hex
        writer = rows.writeStream.format("noop").option("checkpointLocation", str(place))
        query = writer.outputMode("append").trigger(availableNow=True).start()
        query.awaitTermination()
        shutil.rmtree(place, ignore_errors=True)
        return sum(_seconds(query.recentProgress))


def _seconds(progress: list[Any]) -> list[float]:
    """Return how long each micro-batch took that had something to do."""
    return [each.durationMs["addBatch"] / 1000 for each in progress if "addBatch" in each.durationMs]


def _all_kept(pipeline: Pipeline) -> None:
    for name in ("left", "right"):
        pipeline.source(name, SCHEMA, event_time="at", key="k", topic="steps")

    @pipeline.sink(targets.foreach(_nowhere))
    def joined(left: DataFrame, right: DataFrame) -> DataFrame:
        return left.transform(
            joins.within(right, on=["k", "n"], before="1 hour", after="1 hour", prefix="r_")
        )


def _nowhere(rows: pa.Table, number: int) -> None:
    """Take the results of a micro-batch."""


def _add(state: dict[str, Any] | None, event: dict[str, Any]) -> dict[str, Any]:
    return {"total": (state or {"total": 0})["total"] + event["n"]}


if __name__ == "__main__":
    sys.exit(main())
