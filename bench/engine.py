"""The engine beside plain PySpark: the same events, the same session, the same run."""

from __future__ import annotations

import shutil
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pandas as pd
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import DoubleType, LongType, StructField, StructType
from rich.console import Console
from rich.table import Table

import headwater
from headwater import schema as schemas
from headwater.engine.batch import packed_read
from headwater.engine.batch.packed_read import OffsetRange
from headwater.engine.files.local_files import LocalFiles
from headwater.engine.plan import phases
from headwater.engine.plan.phases import Stage, arrow_schema
from headwater.engine.spark.session import session
from headwater.engine.stage import bucket_step, runtime
from headwater.engine.stage.bucket_step import StepContext
from headwater.engine.state.state_manifests import StateManifests
from headwater.operators.event_time import FOREVER
from headwater.operators.scan import Scan

ROWS = 1_000_000
FOLDED = 200_000
KEYS = 10_000
SCHEMA = "k STRING, n BIGINT, amount DOUBLE, at TIMESTAMP"
FIRST = 1_700_000_000_000_000
HOUR = 3_600_000_000
STATE = "n BIGINT, total DOUBLE"
console = Console(width=110)


def main() -> None:
    root = Path(tempfile.mkdtemp(prefix="headwater-bench-"))
    started = time.perf_counter()
    spark = session(output=root / "spark.log")
    took = time.perf_counter() - started
    try:
        Bench(root, spark).run(took)
    finally:
        spark.stop()
        shutil.rmtree(root, ignore_errors=True)


class Bench:
    def __init__(self, root: Path, spark: SparkSession):
        self.root, self.spark = root, spark
        self.url = f"file:{root / 'log'}"
        self.results = Table(title="engine beside plain PySpark, same events, same run", title_justify="left")
        for column in ("measure", "headwater", "plain PySpark", "ratio", "goal"):
            self.results.add_column(column, justify="left" if column == "measure" else "right")

    def run(self, started: float) -> None:
        self.results.add_row("Spark session ready", f"{started:.1f} s")
        with headwater.open(self.url) as self.log:
            self._write()
            self.source()
            self.scan()
            self.state()
        console.print(self.results)

    def say(self, what: str) -> None:
        console.print(f"[dim]{time.strftime('%H:%M:%S')} {what}[/dim]")

    def rates(
        self,
        measure: str,
        rows: int,
        ours: Callable[[], float],
        theirs: Callable[[], float],
        goal: str = "",
    ) -> None:
        """Warm both up, then measure them in turns, and compare the best of each."""
        taken: tuple[list[float], list[float]] = ([], [])
        for number in range(3):
            self.say(f"{measure}, round {number + 1} of 3")
            for side, work in enumerate((ours, theirs)):
                taken[side].append(work())
        mine, other = (rows / min(side) / 1e6 for side in taken)
        self.results.add_row(measure, f"{mine:.3f} M/s", f"{other:.3f} M/s", f"{mine / other:.1f}×", goal)

    # What is measured

    def source(self) -> None:
        """Read everything through a stream into nothing: typed columns, or JSON text and from_json."""
        self.rates(
            "source, 1 M events",
            ROWS,
            lambda: self._drain(self._typed()),
            lambda: self._drain(self._json()),
            "≥ 1×",
        )

    def scan(self) -> None:
        """Count and sum for each of 10,000 keys."""
        for name, fold, vectorised in (("by row", by_row, False), ("vectorised", by_column, True)):
            self.rates(
                f"scan {name}, 10 k keys", FOLDED,
                lambda fold=fold, vectorised=vectorised: self._scanned(fold, vectorised),
                lambda: self._drain(self._plain()), "≥ 10×",
            )  # fmt: skip

    def state(self) -> None:
        """Step 1,000 new events on states of 1,000 to 100,000 keys: the new events should decide."""
        times = []
        for keys in (1_000, 10_000, 100_000):
            self.say(f"a micro-batch on the state of {keys:,} keys")
            first = keyed(keys, np.arange(keys))
            work = self._work(by_column, True, first.schema)
            known = {each.bucket: each.meta for each in bucket_step.step_in_driver(work, first)}
            taken = []
            for number in range(30):
                rows = keyed(keys, np.random.default_rng(number).integers(0, keys, 1000), (number + 1) * HOUR)
                start = time.perf_counter()
                done = bucket_step.step_in_driver(replace(work, buckets=known), rows)
                known |= {each.bucket: each.meta for each in done}
                taken.append(time.perf_counter() - start)
            times.append(float(np.median(taken)))
        told = ", ".join(f"{seconds * 1000:.0f} ms" for seconds in times)
        growth = f"{times[-1] / times[0]:.1f}× for 100×"
        self.results.add_row("1,000 new events, state of 1 k, 10 k, 100 k keys", told, "", growth, "≈ 1×")

    # How

    def _write(self) -> None:
        self.say(f"writing {ROWS:,} events")
        table = events(ROWS)
        for name, rows in (("typed", ROWS), ("folded", FOLDED)):
            self.log.create_topic(name, SCHEMA, key="k", event_time="at")
            with self.log.producer(name) as producer:
                producer.send_batch(table.slice(0, rows))
        self.ends = self.log.resolve("folded", "latest").offsets
        self.log.create_topic("text", "value STRING")
        with self.log.producer("text") as producer:
            columns = zip(*(table[name].to_pylist() for name in ("k", "n", "amount")), strict=True)
            texts = [
                orjson.dumps({"k": k, "n": n, "amount": a, "at": FIRST // 10**6 + n}).decode()
                for k, n, a in columns
            ]
            producer.send_batch(pa.table({"value": texts}))

    def _stream(self, topic: str) -> DataFrame:
        options = {"url": self.url, "topic": topic}
        return self.spark.readStream.format("headwater").options(**options).load()

    def _timed(self, topic: str) -> DataFrame:
        return self._stream(topic).withWatermark("at", "0 seconds")

    def _typed(self) -> DataFrame:
        return self._stream("typed").filter("amount >= 0")

    def _json(self) -> DataFrame:
        parsed = F.from_json("value", "k STRING, n BIGINT, amount DOUBLE, at BIGINT").alias("row")
        return self._stream("text").select(parsed).select("row.*").filter("amount >= 0")

    def _scanned(self, fold: Callable[..., Any], vectorised: bool) -> float:
        """Return the seconds of one micro-batch: read, routed, stepped, its results in the driver."""
        start = time.perf_counter()
        options = {"url": self.url, "topic": "folded"}
        rows = self.spark.read.format("headwater").options(**options).load()
        schema = arrow_schema(rows)
        work = self._work(fold, vectorised, schema)
        stage = Stage("scan", rows, work.operator, schema, work.operator.output_schema(schema))
        place = self.log.topic("folded").id
        parts = [OffsetRange(0, options, place, number, 0, end) for number, end in self.ends.items()]
        blobs = packed_read.packed(self.spark, parts, stage, [schema], phases.BUCKETS)
        results = runtime.step_in_workers(work, blobs, stage.output)
        assert sum(note["rows"] for note in results.notes) == FOLDED
        return time.perf_counter() - start

    def _work(self, fold: Callable[..., Any], vectorised: bool, schema: pa.Schema) -> StepContext:
        states = StateManifests(LocalFiles(self.root / "states" / uuid.uuid4().hex))
        states.begin()
        operator = Scan(fold, ("k",), "at", schemas.parse(STATE), vectorised)
        return StepContext(
            states.files.location, operator, schema, states.files, now=FOREVER, count=phases.BUCKETS
        )

    def _plain(self) -> DataFrame:
        shape = StructType([StructField("n", LongType()), StructField("total", DoubleType())])
        return self._timed("folded").groupBy("k").transformWithStateInPandas(Plain(), shape, "append", "None")

    def _drain(self, rows: DataFrame) -> float:
        """Run a query over all there is; return the seconds of its batches, without its start."""
        place = self.root / "checkpoints" / uuid.uuid4().hex
        writer = rows.writeStream.format("noop").option("checkpointLocation", str(place))
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
        shutil.rmtree(place, ignore_errors=True)
        return sum(each.durationMs["addBatch"] for each in query.recentProgress) / 1000


def events(count: int) -> pa.Table:
    chance = np.random.default_rng(7)
    keys = [f"key-{key}" for key in chance.integers(0, KEYS, count).tolist()]
    number = np.arange(count)
    at = pa.array(FIRST + number * 1000).cast(pa.timestamp("us", "UTC"))
    return pa.table({"k": keys, "n": number, "amount": chance.random(count), "at": at})


def keyed(keys: int, numbers: np.ndarray, later: int = 0) -> pa.Table:  # type: ignore[type-arg]
    at = pa.array(FIRST + later + np.arange(len(numbers)) * 1000).cast(pa.timestamp("us", "UTC"))
    names = [f"key-{number}" for number in numbers.tolist()]
    return pa.table({"k": names, "n": numbers, "amount": numbers / keys, "at": at})


def by_row(state: dict[str, Any] | None, event: dict[str, Any]) -> dict[str, Any]:
    before = state or {"n": 0, "total": 0.0}
    return {"n": before["n"] + 1, "total": before["total"] + event["amount"]}


def by_column(before: pa.Table, events: pa.Table, groups: np.ndarray) -> pa.Table:  # type: ignore[type-arg]
    starts = np.flatnonzero(np.diff(groups, prepend=-1))
    amount = events["amount"].to_numpy()
    total = np.cumsum(amount)
    offset = total[starts] - amount[starts]
    was = [np.nan_to_num(before[name].to_numpy().astype(float)) for name in ("n", "total")]
    n = np.arange(len(groups)) - starts[groups] + 1 + was[0][groups].astype(np.int64)
    return pa.table({"n": n, "total": total - offset[groups] + was[1][groups]}, schema=schemas.parse(STATE))


class Plain(StatefulProcessor):
    """What a PySpark user writes: state per key, rows one by one."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._state = handle.getValueState("state", "n BIGINT, total DOUBLE")

    def handleInputRows(
        self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any
    ) -> Iterator[pd.DataFrame]:
        n, total = self._state.get() if self._state.exists() else (0, 0.0)
        for frame in rows:
            out = []
            for amount in frame.sort_values("at")["amount"]:
                n, total = n + 1, total + amount
                out.append((n, total))
            yield pd.DataFrame(out, columns=["n", "total"])
        self._state.update((int(n), float(total)))

    def close(self) -> None:
        pass


if __name__ == "__main__":
    main()
