"""Records that tasks read themselves: the same blobs as if Spark had read them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import headwater
from headwater.engine.batch import packed_read
from headwater.engine.batch.packed_read import OffsetRange
from headwater.engine.exchange.blobs import TALLY, decode
from headwater.engine.exchange.frames import frame
from headwater.engine.files.home_files import HomeFiles
from headwater.engine.files.local_files import LocalFiles
from headwater.engine.plan.phases import Stage
from headwater.engine.stage import bucket_step, runtime
from headwater.engine.stage.bucket_step import StepContext
from headwater.engine.state.state_manifests import StateManifests
from headwater.operators.latest import Latest

SCHEMA = pa.schema([("who", pa.string()), ("n", pa.int64()), ("at", pa.timestamp("us", "UTC"))])
BUCKETS = 8


@pytest.mark.parametrize("skips", ["{}", '{"0": [3, 4, 60], "1": [0]}'])
def test_the_blobs_are_those_of_the_rows(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, skips: str
) -> None:
    monkeypatch.setattr(packed_read, "LEAST", 7)
    url = f"file:{tmp_path / 'log'}"
    with headwater.open(url) as log:
        log.create_topic("orders", SCHEMA, key="who", partitions=2)
        with log.producer("orders") as producer:
            producer.send_batch([{"who": f"w{n % 9}", "n": n, "at": n} for n in range(200)])
        ends = log.resolve("orders", "latest")
    options = {"url": url, "topic": "orders", "skip": skips}
    rows = spark.read.format("headwater").options(**options).load()
    stage = Stage("latest", rows, Latest(("who",), "at"), SCHEMA, SCHEMA)
    parts = [OffsetRange(0, options, ends.id, number, 0, end) for number, end in ends.offsets.items()]
    read = packed_read.packed(spark, parts, stage, [SCHEMA], 4)
    assert read.rdd.getNumPartitions() > 2
    assert _by_bucket(read) == _by_bucket(runtime.packed(rows, stage.operator, 4, tally=True))


@pytest.mark.parametrize("partitions", [1, 3, 20])
def test_workers_have_the_buckets_of_the_driver_whatever_shuffle_partitions_says(
    spark: SparkSession, tmp_path: Path, partitions: int
) -> None:
    rows = pa.Table.from_pylist([{"who": f"w{n % 90}", "n": n, "at": n} for n in range(200)], SCHEMA)
    operator = Latest(("who",), "at")
    works = [
        StepContext(name, operator, SCHEMA, _states(tmp_path / name), count=BUCKETS)
        for name in ("there", "here")
    ]
    before = spark.conf.get("spark.sql.shuffle.partitions")
    spark.conf.set("spark.sql.shuffle.partitions", str(partitions))
    try:
        blobs = runtime.packed(frame(spark, rows), operator, BUCKETS, tally=True)
        there = runtime.step_in_workers(works[0], blobs, SCHEMA)
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", before)
    here = runtime.combine(bucket_step.step_in_driver(works[1], rows), SCHEMA, SCHEMA)
    assert sorted(there.buckets) == sorted(here.buckets) == list(range(8))
    assert there.main.to_pylist() == here.main.to_pylist()


def _states(home: Path) -> HomeFiles:
    states = StateManifests(LocalFiles(home))
    states.begin()
    return states.files


def _by_bucket(blobs: object) -> dict[int, list[object]]:
    """Return the rows of each bucket in the order of their tasks, and under TALLY their number."""
    found: dict[int, list[object]] = {}
    for row in sorted(blobs.collect(), key=lambda row: row["task"]):  # type: ignore[attr-defined]
        there = found.setdefault(row["bucket"], [])
        there += [int(row["blob"])] if row["bucket"] == TALLY else decode(bytes(row["blob"])).to_pylist()
    found[TALLY] = [sum(found[TALLY])]  # type: ignore[arg-type]
    return found
