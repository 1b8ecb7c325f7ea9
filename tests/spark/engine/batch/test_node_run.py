"""A node that sets late rows aside: their topic is noted, and missed where it is deleted."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

import headwater
from headwater import Pipeline, dedup
from headwater.engine.runner import Runner
from headwater.errors import HeadwaterError, PipelineError
from headwater.sinks import crash

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def deduplicated(path: Path) -> Pipeline:
    pipeline = Pipeline("shop", log=f"file:{path / 'log'}", home=path / "home")
    pipeline.source("orders", "id BIGINT, at TIMESTAMP", event_time="at")

    @pipeline.stream()
    def unique(orders: DataFrame) -> DataFrame:
        return orders.transform(dedup("id", within="1 minute"))

    return pipeline


def late(spark: SparkSession, path: Path, id: int) -> None:
    """Let an order come that is a day later than others, and one that is too late."""
    with Runner(deduplicated(path), spark=spark, patient=True) as runner:
        for at in (NOON + timedelta(days=id), NOON - timedelta(days=1)):
            with runner.log.producer("orders", id="test") as producer:
                producer.send({"id": id, "at": at})
            runner.catch_up()


def test_a_topic_of_late_rows_that_was_deleted_is_missed(spark: SparkSession, tmp_path: Path) -> None:
    late(spark, tmp_path, 1)
    late(spark, tmp_path, 2)
    with headwater.open(f"file:{tmp_path / 'log'}") as log:
        assert [row["id"] for batch in log.read("shop.unique.late") for row in batch.to_pylist()] == [1, 2]
        log.delete_topic("shop.unique.late")
    with pytest.raises(PipelineError, match='has lost rows that stream "unique" had set aside') as caught:
        late(spark, tmp_path, 3)
    Path(str(caught.value.hint).split('"')[1]).unlink()
    late(spark, tmp_path, 4)
    with headwater.open(f"file:{tmp_path / 'log'}") as log:
        assert [row["id"] for batch in log.read("shop.unique.late") for row in batch.to_pylist()] == [4]


class Killed(Exception):
    """As if the runner were gone: nothing behind the point where it is raised happens."""


def renamed(path: Path, partitions: int) -> Pipeline:
    pipeline = Pipeline("shop", log=f"file:{path / 'log'}", home=path / "home")
    pipeline.source("orders", "id BIGINT, at TIMESTAMP", event_time="at")

    @pipeline.stream(key="number", partitions=partitions)
    def numbers(orders: DataFrame) -> DataFrame:
        return orders.selectExpr("id AS number", "at")

    return pipeline


def test_a_micro_batch_is_repeated_once_though_its_topic_has_got_partitions(
    spark: SparkSession, tmp_path: Path
) -> None:
    for first, partitions in ((0, 3), (100, 5)):
        with Runner(renamed(tmp_path, partitions), spark=spark, patient=True) as runner:
            with runner.log.producer("orders", id="test") as producer:
                producer.send_batch([{"id": first + i, "at": NOON} for i in range(50)])
            crash.watch(_killed_at("query: committed"))
            with pytest.raises(HeadwaterError):
                runner.catch_up()
            crash.watch(None)
            runner.log.alter_topic("shop.numbers", partitions=partitions + 2)
        with Runner(renamed(tmp_path, partitions + 2), spark=spark, patient=True) as runner:
            runner.catch_up()
            rows = [row for batch in runner.log.read("shop.numbers") for row in batch.to_pylist()]
    assert sorted(row["number"] for row in rows) == [*range(50), *range(100, 150)]


def _killed_at(point: str) -> Callable[[str], None]:
    def reached(name: str) -> None:
        if name == point:
            raise Killed(name)

    return reached
