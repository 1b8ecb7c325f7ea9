"""A pipeline whose home was removed begins anew, on a log that has what it set aside before."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from headwater import Pipeline, agg, windows
from headwater.engine.proof.verify import verify
from headwater.engine.runner import Runner

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.fixture
def sums(tmp_path: Path) -> Pipeline:
    pipeline = Pipeline("sums", log=f"file:{tmp_path / 'log'}", home=tmp_path / "home")
    pipeline.source("events", "k BIGINT, x BIGINT, at TIMESTAMP", event_time="at")

    @pipeline.view(key=["k", "window_start"], on_error="dead_letter")
    def shares(events: DataFrame) -> DataFrame:
        counted = events.transform(windows.tumbling("10 seconds", by="k", late="side", s=agg.sum("x")))
        return counted.withColumn("share", 100 / F.col("s"))

    return pipeline


def rows(runner: Runner, topic: str) -> list[dict[str, Any]]:
    return [row for batch in runner.log.read(topic) for row in batch.to_pylist()]


def test_what_is_set_aside_after_that_is_kept(spark: SparkSession, sums: Pipeline) -> None:
    def run(*events: tuple[int, int, int]) -> None:
        with Runner(sums, spark=spark, patient=True) as runner:
            with runner.log.producer("events", id="test") as producer:
                producer.send_batch(
                    [{"k": k, "x": x, "at": NOON + timedelta(seconds=at)} for k, x, at in events]
                )
            runner.catch_up()

    for after in (0, 1000, 2000):
        run((1, 1, after), (1, 1, after + 100))
    run((7, 1, 0), (8, 0, 2200), (1, 1, 2900))  # one too late, and one that is divided by
    shutil.rmtree(sums.home)
    run()
    run((9, 1, 0), (8, 0, 3200), (1, 1, 3900))
    with Runner(sums, spark=spark, patient=True) as runner:
        assert [row["k"] for row in rows(runner, "sums.shares.late")] == [7, 9]
        assert len(rows(runner, "sums.shares.dead")) == 3  # the first of them twice
        assert verify(runner, "shares").ok
