"""Plain Spark over topics, without a pipeline: what `docs/spark.md` says."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import headwater
import headwater.spark

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.fixture
def log(url: str, spark: SparkSession) -> headwater.Log:
    headwater.spark.register(spark)
    log = headwater.open(url)
    log.create_topic("orders", "id BIGINT, who STRING, at TIMESTAMP", event_time="at", partitions=2)
    log.create_topic("copies", "id BIGINT, who STRING, at TIMESTAMP", key="who", partitions=3)
    log.create_topic("minutes", "who STRING, start TIMESTAMP, orders BIGINT")
    return log


def send(log: headwater.Log, numbers: range) -> None:
    with log.producer("orders", id="shop") as producer:
        producer.send_batch(
            [{"id": n, "who": f"w{n % 3}", "at": NOON + timedelta(seconds=n)} for n in numbers]
        )


def rows(log: headwater.Log, topic: str) -> list[dict[str, Any]]:
    return [row for batch in log.read(topic) for row in batch.to_pylist()]


def drain(made: DataFrame, url: str, topic: str, checkpoint: Path, mode: str = "append") -> None:
    """Run a query over all there is now."""
    places = {"url": url, "topic": topic, "checkpointLocation": str(checkpoint)}
    writer = made.writeStream.format("headwater").options(**places).outputMode(mode)
    writer.trigger(availableNow=True).start().awaitTermination()


def orders(spark: SparkSession, url: str, **more: str) -> DataFrame:
    return spark.readStream.format("headwater").options(url=url, topic="orders", **more).load()


def test_a_batch_is_appended_and_read_again(spark: SparkSession, url: str, log: headwater.Log) -> None:
    send(log, range(10))
    found = spark.read.format("headwater").options(url=url, topic="orders").load()
    found.filter("id < 5").write.format("headwater").options(url=url, topic="copies").mode("append").save()
    assert sorted(row["id"] for row in rows(log, "copies")) == list(range(5))
    assert {row["at"] for row in rows(log, "copies")} == {NOON + timedelta(seconds=n) for n in range(5)}


def test_a_query_goes_on_where_it_was(
    spark: SparkSession, url: str, log: headwater.Log, tmp_path: Path
) -> None:
    for numbers in (range(20), range(20, 25)):
        send(log, numbers)
        drain(orders(spark, url, limit="7"), url, "copies", tmp_path / "checkpoint")
    assert sorted(row["id"] for row in rows(log, "copies")) == list(range(25))


def test_a_micro_batch_that_comes_again_is_appended_once(
    spark: SparkSession, url: str, log: headwater.Log, tmp_path: Path
) -> None:
    send(log, range(20))
    checkpoint = tmp_path / "checkpoint"
    drain(orders(spark, url).repartition(3), url, "copies", checkpoint)
    newest = max(int(path.name) for path in (checkpoint / "commits").iterdir() if path.name.isdigit())
    (checkpoint / "commits" / str(newest)).unlink()  # as if it had crashed before
    send(log, range(20, 22))
    drain(orders(spark, url).repartition(2), url, "copies", checkpoint)
    assert sorted(row["id"] for row in rows(log, "copies")) == list(range(22))


def test_a_micro_batch_that_comes_again_goes_where_it_went_though_the_topic_has_got_partitions(
    spark: SparkSession, url: str, log: headwater.Log, tmp_path: Path
) -> None:
    send(log, range(20))
    checkpoint = tmp_path / "checkpoint"
    drain(orders(spark, url).repartition(3), url, "copies", checkpoint)
    (checkpoint / "commits" / "0").unlink()  # as if it had crashed before
    log.alter_topic("copies", partitions=7)
    send(log, range(20, 22))
    drain(orders(spark, url).repartition(2), url, "copies", checkpoint)
    assert sorted(row["id"] for row in rows(log, "copies")) == list(range(22))


def test_sparks_own_windows_go_from_topic_to_topic(
    spark: SparkSession, url: str, log: headwater.Log, tmp_path: Path
) -> None:
    def minutes() -> DataFrame:
        timed = orders(spark, url).withWatermark("at", "0 seconds")
        counted = timed.groupBy(F.window("at", "1 minute"), "who").count()
        return counted.selectExpr("who", "window.start AS start", "count AS orders")

    for numbers in (range(60), range(60, 200)):
        send(log, numbers)
        drain(minutes(), url, "minutes", tmp_path / "checkpoint")
    told = {(row["who"], row["start"]): row["orders"] for row in rows(log, "minutes")}
    assert len(told) == len(rows(log, "minutes"))
    assert told[("w0", NOON)] == 20


@pytest.mark.parametrize("write", ["a batch", "a query"])
def test_a_topic_is_never_overwritten(
    write: str, spark: SparkSession, url: str, log: headwater.Log, tmp_path: Path
) -> None:
    send(log, range(3))
    places = {"url": url, "topic": "copies"}

    def batch() -> None:
        found = spark.read.format("headwater").options(url=url, topic="orders").load()
        found.write.format("headwater").options(**places).mode("overwrite").save()

    def query() -> None:
        counted = orders(spark, url).groupBy("who").count()
        drain(counted, url, "minutes", tmp_path / "checkpoint", "complete")

    ways: dict[str, Callable[[], None]] = {"a batch": batch, "a query": query}
    with pytest.raises(Exception, match="cannot be overwritten: a log is appended to"):
        ways[write]()


def test_a_checkpoint_that_is_older_than_what_was_written_is_refused(
    spark: SparkSession, url: str, log: headwater.Log, tmp_path: Path
) -> None:
    checkpoint = tmp_path / "checkpoint"
    for first in (0, 10, 20):
        send(log, range(first, first + 10))
        drain(orders(spark, url), url, "copies", checkpoint)
    for folder in ("offsets", "commits"):
        for path in (checkpoint / folder).iterdir():
            if path.name.strip(".").split(".")[0] in ("1", "2"):
                path.unlink()
    with pytest.raises(Exception, match="older than what it has written"):
        drain(orders(spark, url), url, "copies", checkpoint)
    assert sorted(row["id"] for row in rows(log, "copies")) == list(range(30))
