"""A node that sets late rows aside: their topic is noted, and missed where it is deleted."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

import headwater
from headwater import Pipeline, dedup
from headwater.engine.runner import Runner
from headwater.errors import PipelineError

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
