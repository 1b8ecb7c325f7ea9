"""What the proof does not cover is said to be not verified, and never called equal."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from headwater import Pipeline, agg, joins, windows
from headwater.engine.proof.verify import verify
from headwater.testing.harness import Harness

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def requests() -> Pipeline:
    pipeline = Pipeline("site")
    pipeline.source("requests", "path STRING, ms DOUBLE, at TIMESTAMP", event_time="at")
    pipeline.table("pages", "path STRING, title STRING", key="path")

    def measured(requests: DataFrame) -> DataFrame:
        p99 = agg.quantile("ms", 0.99, bounds=True)
        return requests.transform(windows.tumbling("1 minute", by="path", n=agg.count(), p99=p99))

    @pipeline.view(key="path,window_start")
    def latency(requests: DataFrame) -> DataFrame:
        return measured(requests)

    @pipeline.view(key="path,window_start")
    def slow(requests: DataFrame) -> DataFrame:
        return measured(requests).selectExpr("path", "window_start", "round(p99) AS worst")

    @pipeline.view(key="path,window_start")
    def counts(requests: DataFrame) -> DataFrame:
        return measured(requests).select("path", "window_start", "n")

    @pipeline.stream()
    def titled(requests: DataFrame, pages: DataFrame) -> DataFrame:
        return requests.transform(joins.lookup(pages, on="path"))

    return pipeline


def test_estimates_and_what_goes_by_arrival_are_not_verified(spark: SparkSession) -> None:
    with Harness(requests(), spark=spark) as harness:
        rows: list[dict[str, Any]] = [
            {"path": "/", "ms": float(n), "at": NOON + timedelta(milliseconds=n)} for n in range(500)
        ]
        harness.send("requests", rows)
        harness.advance(NOON + timedelta(hours=1))
        harness.step()
        names = ("latency", "slow", "counts", "titled")
        found = {name: verify(harness._runner, name) for name in names}
    assert (found["latency"].equal, found["latency"].aside) == (1, ("p99", "p99_low", "p99_high"))
    assert found["slow"].unproved == "its code goes on with estimates: p99, p99_low, p99_high"
    assert (found["counts"].equal, found["counts"].unproved) == (1, None)
    assert found["titled"].unproved is not None
