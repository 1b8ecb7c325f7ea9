"""A node that waits for time hears of it, or is refused before it starts."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from headwater import Pipeline, agg, latest, windows
from headwater.engine.plan.checking import check
from headwater.engine.runner import Runner
from headwater.errors import PipelineError


def timed_by_a_stream(tmp_path: Path, *, window: bool, source_time: str | None = None) -> Pipeline:
    """Return a pipeline whose stream makes up an event time, and a view of it."""
    shop = Pipeline("shop", log=f"file:{tmp_path / 'log'}")
    shop.source("orders", "id BIGINT, at BIGINT", event_time=source_time)

    @shop.stream(event_time="placed")
    def placed(orders: DataFrame) -> DataFrame:
        return orders.select("id", F.timestamp_millis("at").alias("placed"))

    @shop.view(key=["id", "window_start"] if window else "id")
    def result(placed: DataFrame) -> DataFrame:
        over = windows.tumbling("1 minute", by="id", n=agg.count()) if window else latest(by="id")
        return placed.transform(over)

    return shop


def test_a_window_over_a_stream_whose_sources_have_no_time_is_refused(
    spark: SparkSession, tmp_path: Path
) -> None:
    with pytest.raises(PipelineError, match="never hears of it") as refused:
        check(timed_by_a_stream(tmp_path, window=True), spark)
    assert 'event_time= at "orders"' in str(refused.value)
    with pytest.raises(PipelineError, match="never hears of it"):
        Runner(timed_by_a_stream(tmp_path, window=True), spark=spark)


def test_what_does_not_wait_needs_no_clock(spark: SparkSession, tmp_path: Path) -> None:
    assert "result" in check(timed_by_a_stream(tmp_path, window=False), spark)


def test_a_source_that_computes_its_time_is_enough(spark: SparkSession, tmp_path: Path) -> None:
    pipeline = timed_by_a_stream(tmp_path, window=True, source_time="timestamp_millis(at)")
    assert "result" in check(pipeline, spark)
