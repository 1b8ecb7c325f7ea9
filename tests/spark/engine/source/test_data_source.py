"""The log as a Spark data source: batches, streams, limits, and the time in its offsets."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.datasource import ReadAllAvailable

import headwater
from headwater.engine.home.checkpoint import InputProgress, input_progress, last_batch
from headwater.engine.plan.column_marks import event_time_of, marked
from headwater.engine.source.data_source import StreamReader

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
MICROS = int(NOON.timestamp()) * 1_000_000
SECOND = 1_000_000


@pytest.fixture
def log(url: str) -> headwater.Log:
    log = headwater.open(url)
    log.create_topic("events", "k STRING, n BIGINT, at TIMESTAMP", key="k", event_time="at", partitions=2)
    return log


def send(log: headwater.Log, *appends: range) -> None:
    with log.producer("events") as producer:
        for numbers in appends:
            producer.send_batch([{"k": f"k{n}", "n": n, "at": MICROS + n * SECOND} for n in numbers])
            producer.flush()


def batch(spark: SparkSession, url: str, **options: str) -> DataFrame:
    return spark.read.format("headwater").options(url=url, **{"topic": "events", **options}).load()


def stream(spark: SparkSession, url: str, **options: str) -> DataFrame:
    given = {"topic": "events", "lateness": "0", "idle": str(10 * SECOND), **options}
    return spark.readStream.format("headwater").options(url=url, **given).load()


def drain(rows: DataFrame, checkpoint: Path, seen: Callable[[DataFrame, int], None]) -> None:
    """Run a query over all there is now."""
    writer = rows.writeStream.foreachBatch(seen).option("checkpointLocation", str(checkpoint))
    writer.trigger(availableNow=True).start().awaitTermination()


def test_a_batch_has_every_record_with_its_types(spark: SparkSession, url: str) -> None:
    schema = (
        "b BOOLEAN, i INT, f FLOAT, d DECIMAL(10,2), s STRING, y BINARY, day DATE, at TIMESTAMP, "
        "wall TIMESTAMP_NTZ, a ARRAY<INT>, m MAP<STRING, BIGINT>, st STRUCT<x: INT, y: STRING>, v VARIANT"
    )
    row: dict[str, Any] = {
        "b": True,
        "i": 1,
        "f": 1.5,
        "d": Decimal("1.50"),
        "s": "é",
        "y": b"\0",
        "day": NOON.date(),
        "at": NOON,
        "wall": NOON.replace(tzinfo=None),
        "a": [1, None],
        "m": {"k": 2},
        "st": {"x": 1, "y": None},
        "v": {"a": 1},
    }
    with headwater.open(url) as log:
        log.create_topic("types", schema)
        with log.producer("types") as producer:
            producer.send_batch([row, dict.fromkeys(row)])
    first, second = batch(spark, url, topic="types").collect()
    told = first.asDict(recursive=True)
    # Spark hands times to Python as local ones, and bytes as a bytearray.
    told |= {"y": bytes(told["y"]), "at": told["at"].astimezone(UTC), "v": json.loads(told["v"])}
    assert told == row
    assert all(value is None for value in second)


def test_a_batch_reads_between_two_places(spark: SparkSession, url: str, log: headwater.Log) -> None:
    send(log, range(10))
    middle = log.resolve("events", "latest")
    send(log, range(10, 20))
    assert batch(spark, url, end=str(middle)).count() == 10
    assert sorted(row.n for row in batch(spark, url, start=str(middle)).collect()) == list(range(10, 20))


def test_only_the_columns_asked_for_are_read(spark: SparkSession, url: str, log: headwater.Log) -> None:
    send(log, range(3))
    assert batch(spark, url, columns="n").columns == ["n"]
    assert sorted(row.n for row in batch(spark, url, columns="n").collect()) == [0, 1, 2]


def test_metadata_comes_on_request(spark: SparkSession, url: str, log: headwater.Log) -> None:
    send(log, range(3))
    rows = batch(spark, url, meta="true").select("_partition", "_offset", "_producer").collect()
    assert len({(row._partition, row._offset) for row in rows}) == 3
    assert len({row._producer for row in rows}) == 1


def test_a_stream_reads_everything_once_within_its_limit(
    spark: SparkSession, url: str, log: headwater.Log, tmp_path: Path
) -> None:
    send(log, range(5), range(5, 25))  # the first append of a producer is read whole
    sizes: list[int] = []
    seen: list[int] = []

    def take(rows: DataFrame, number: int) -> None:
        found = [row.n for row in rows.collect()]
        sizes.append(len(found))
        seen.extend(found)

    drain(stream(spark, url, limit="10"), tmp_path / "checkpoint", take)
    assert sorted(seen) == list(range(25))
    assert max(sizes) == 10
    send(log, range(25, 30))
    drain(stream(spark, url, limit="10"), tmp_path / "checkpoint", take)
    assert sorted(seen) == list(range(30))


def test_the_offsets_tell_positions_and_clock(
    spark: SparkSession, url: str, log: headwater.Log, tmp_path: Path
) -> None:
    with log.producer("events") as producer:
        producer.send_batch([{"k": "a", "n": n, "at": MICROS + n * SECOND} for n in range(10)])
    inputs = {"told": {"url": url, "topic": "events", "lateness": str(2 * SECOND), "idle": str(SECOND)}}
    planned = spark.readStream.format("headwater-plan").option("inputs", json.dumps(inputs)).load()
    drain(planned, tmp_path / "checkpoint", lambda rows, number: None)
    told = input_progress(tmp_path / "checkpoint", last_batch(tmp_path / "checkpoint"))
    assert isinstance(told, InputProgress)
    assert told.positions == (log.resolve("events", "latest"),)
    assert told.watermark == MICROS + 7 * SECOND


def test_time_goes_on_in_the_offsets_though_nothing_is_read(url: str, log: headwater.Log) -> None:
    reader = StreamReader({"url": url, "topic": "events", "lateness": "0", "idle": str(SECOND)})
    with log.producer("events", id="one") as producer:
        producer.send_batch([{"k": "a", "n": 1, "at": NOON}])
    first = reader.latestOffset(reader.initialOffset(), ReadAllAvailable())
    with log.producer("events", id="one") as producer:
        producer.mark(NOON + timedelta(hours=1))
    second = reader.latestOffset(first, ReadAllAvailable())
    assert second["clock"] - first["clock"] == 3600 * SECOND
    reader.stop()


def test_nobody_is_taken_for_idle_where_records_behind_the_end_are_not_looked_at(
    url: str, log: headwater.Log
) -> None:
    with log.producer("events", id="slow") as slow, log.producer("events", id="fast") as fast:
        slow.send_batch([{"k": "a", "n": 1, "at": NOON}])
        slow.flush()
        fast.send_batch([{"k": "a", "n": 2, "at": NOON + timedelta(minutes=1)}])
        fast.flush()
        until = log.resolve("events", "latest")
        slow.send_batch([{"k": "a", "n": 3, "at": NOON + timedelta(seconds=1)}])
    options = {"url": url, "topic": "events", "lateness": "0", "idle": "1", "until": str(until)}
    reader = StreamReader(options)
    told = reader.latestOffset(reader.initialOffset(), ReadAllAvailable())
    assert sum(told["offsets"].values()) == 2
    assert told["clock"] == MICROS
    reader.stop()


@pytest.mark.parametrize(
    ("code", "found"),
    [("*", "at"), ("n + 1 AS m", None), ("at AS moment", "moment"), ("at + INTERVAL 1 DAY", None)],
)
def test_the_event_time_is_found_again_behind_user_code(
    spark: SparkSession, code: str, found: str | None
) -> None:
    rows = marked(spark.createDataFrame([], "k STRING, n BIGINT, at TIMESTAMP"), "at")
    assert event_time_of(rows.selectExpr(code)) == found


def test_nothing_new_is_planned_while_the_gate_is_closed(
    url: str, log: headwater.Log, tmp_path: Path
) -> None:
    gate = tmp_path / "open"
    options = {"url": url, "topic": "events", "lateness": "0", "idle": "1", "gate": str(gate)}
    reader = StreamReader(options)
    send(log, range(4))
    start = reader.initialOffset()
    assert reader.latestOffset(start, ReadAllAvailable()) == start
    gate.touch()
    assert sum(reader.latestOffset(start, ReadAllAvailable())["offsets"].values()) == 4
    reader.stop()
