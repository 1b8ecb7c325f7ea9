"""Windows and joins beside Spark's own: the same events, the same session, the same run.

Ours is a micro-batch as a node has it whose operator comes first: records read, routed and stepped, the
states stored, the results in the driver. Spark's is its own operator in a stream over the same topic, in
one micro-batch, its results nowhere. Spark loses late rows, and ours keeps them.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
import uuid
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from rich.console import Console
from rich.table import Table

import headwater
from headwater import agg, joins, windows
from headwater.engine import applying, direct, runtime
from headwater.engine.applying import Stage, arrow_schema
from headwater.engine.direct import Part
from headwater.engine.session import session
from headwater.engine.states import States
from headwater.engine.stepping import Work
from headwater.operators.door import Door, Side
from headwater.operators.operator import FOREVER

ROWS = 1_000_000
JOINED = 200_000
FIRST = 1_700_000_000_000_000
SCHEMA = "k STRING, n BIGINT, at TIMESTAMP"
KEPT = {"n": agg.count(), "total": agg.sum("n")}
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

    def run(self) -> None:
        with headwater.open(self.url) as self.log:
            self._write("few", ROWS, 10_000)
            self._write("many", ROWS, 1_000_000)
            for name in ("left", "right"):
                self._write(name, JOINED, 10_000)
            self.windows()
            self.joins()
        console.print(self.results)

    # What is measured

    def windows(self) -> None:
        tumbling = windows.tumbling("1 minute", by="k", **KEPT)
        for topic, keys in (("few", "10 k keys"), ("many", "1 M keys")):
            self.beside(
                f"tumbling, {keys}", ROWS, tumbling, [topic],
                lambda rows: self._own(rows, F.window("at", "1 minute")), "≥ 1×",
            )  # fmt: skip
        corrected = windows.tumbling("1 minute", by="k", late="correct", keep="1 hour", **KEPT)
        self.beside("tumbling, late rows correct", ROWS, corrected, ["few"], None)
        hopping = windows.hopping("5 minutes", "1 minute", by="k", **KEPT)
        self.beside(
            "hopping 5 minutes / 1 minute", ROWS, hopping, ["few"],
            lambda rows: self._own(rows, F.window("at", "5 minutes", "1 minute")), "≥ 1×",
        )  # fmt: skip
        self.beside(
            "session, gap 10 seconds", ROWS, windows.session("10 seconds", by="k", **KEPT), ["few"],
            lambda rows: self._own(rows, F.session_window("at", "10 seconds")), "≥ 1×",
        )  # fmt: skip
        self.beside("sliding 10 seconds", ROWS, windows.sliding("10 seconds", by="k", **KEPT), ["few"], None)

    def joins(self) -> None:
        within = joins.within(None, on="k", before="5 seconds", after="5 seconds", prefix="r_")
        self.beside("within 5 seconds", 2 * JOINED, within, ["left", "right"], self._interval_join, "≥ 8×")

    def beside(
        self,
        measure: str,
        rows: int,
        door: Door,
        topics: list[str],
        own: Callable[..., DataFrame] | None,
        goal: str = "",
    ) -> None:
        """Measure both in turns, and compare the best of each."""
        taken: tuple[list[float], list[float]] = ([], [])
        for number in range(3):
            console.print(f"[dim]{time.strftime('%H:%M:%S')} {measure}, round {number + 1} of 3[/dim]")
            taken[0].append(self._ours(door, topics))
            if own is not None:
                taken[1].append(self._drain(own(*map(self._stream, topics))))
        mine = rows / min(taken[0]) / 1e6
        other = rows / min(taken[1]) / 1e6 if own is not None else None
        told = (f"{other:.3f} M/s", f"{mine / other:.1f}×") if other is not None else ("", "")
        self.results.add_row(measure, f"{mine:.3f} M/s", *told, goal)

    # How

    def _write(self, topic: str, count: int, keys: int) -> None:
        chance, number = np.random.default_rng(len(topic)), np.arange(count)
        self.log.create_topic(topic, SCHEMA, key="k", event_time="at")
        at = pa.array(FIRST + number * 1000 + chance.integers(0, 1000, count)).cast(pa.timestamp("us", "UTC"))
        names = [f"key-{key}" for key in chance.integers(0, keys, count).tolist()]
        with self.log.producer(topic) as producer:
            producer.send_batch(pa.table({"k": names, "n": number, "at": at}))

    def _ours(self, door: Door, topics: list[str]) -> float:
        start = time.perf_counter()
        options = [{"url": self.url, "topic": topic} for topic in topics]
        frames = [self.spark.read.format("headwater").options(**each).load() for each in options]
        sides = [Side(arrow_schema(frame), "at") for frame in frames]
        operator, schema = door.build(*sides), sides[0].schema
        if door.pairing is not None:
            schema = door.pairing.schema(door.name, schema, sides[1].schema)
        stage = Stage(door.name, frames[0], operator, schema, operator.output(schema), (), door.pairing)
        ends = [self.log.resolve(topic, "latest").offsets[0] for topic in topics]
        parts = [Part(side, options[side], 0, 0, end) for side, end in enumerate(ends)]
        blobs = direct.packed(self.spark, parts, stage, [side.schema for side in sides], applying.BUCKETS)
        states = States(self.root / "states" / uuid.uuid4().hex)
        states.begin()
        work = Work(str(states.chunks), operator, schema, str(states.chunks), now=FOREVER)
        results = runtime.spread(work, blobs, stage.output)
        assert results.main.num_rows
        return time.perf_counter() - start

    def _stream(self, topic: str) -> DataFrame:
        options = {"url": self.url, "topic": topic}
        return (
            self.spark.readStream.format("headwater")
            .options(**options)
            .load()
            .withWatermark("at", "0 seconds")
        )

    def _own(self, rows: DataFrame, window: object) -> DataFrame:
        return rows.groupBy(window, "k").agg(F.count("*").alias("c"), F.sum("n").alias("s"))  # type: ignore[arg-type]

    def _interval_join(self, left: DataFrame, right: DataFrame) -> DataFrame:
        near = "l.k = r.k AND r.at >= l.at - INTERVAL 5 SECONDS AND r.at <= l.at + INTERVAL 5 SECONDS"
        return left.alias("l").join(right.alias("r"), F.expr(near))

    def _drain(self, rows: DataFrame) -> float:
        """Run a query over all there is; return the seconds of its batches, without its start."""
        place = self.root / "checkpoints" / uuid.uuid4().hex
        writer = rows.writeStream.format("noop").option("checkpointLocation", str(place))
        query = writer.outputMode("append").trigger(availableNow=True).start()
        query.awaitTermination()
        shutil.rmtree(place, ignore_errors=True)
        return sum(each.durationMs["addBatch"] for each in query.recentProgress) / 1000


if __name__ == "__main__":
    sys.exit(main())
