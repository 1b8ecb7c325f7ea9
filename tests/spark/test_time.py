"""Event time and processing time: a pipeline that was stopped for a minute shows no false spike."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from headwater import Pipeline, agg, windows
from headwater.sinks import targets
from headwater.testing.harness import Harness

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def test_a_redeploy_is_a_spike_by_processing_time_and_none_by_event_time(spark: SparkSession) -> None:
    arrived: list[int] = []
    pipeline = Pipeline("site")
    pipeline.source("requests", "id BIGINT, at TIMESTAMP", event_time="at")

    @pipeline.view(key="window_start")
    def by_event_time(requests: DataFrame) -> DataFrame:
        return requests.transform(windows.tumbling("10 seconds", requests=agg.count()))

    def note(rows: pa.Table, batch: int) -> None:
        arrived.append(rows.num_rows)

    @pipeline.sink(targets.foreach(note))
    def by_processing_time(requests: DataFrame) -> DataFrame:
        return requests

    with Harness(pipeline, spark=spark) as harness:
        for stretch in range(12):  # of ten seconds each, with ten requests a second
            first = stretch * 100
            rows = [{"id": n, "at": NOON + timedelta(seconds=n / 10)} for n in range(first, first + 100)]
            harness.send("requests", rows)
            if stretch == 8:
                harness.restart()
            if not 3 <= stretch < 9:  # for a minute nothing runs
                harness.step()
        harness.advance(NOON + timedelta(minutes=2))
        harness.step()
        assert [row["requests"] for row in harness.view("by_event_time")] == [100] * 12
        assert [rows for rows in arrived if rows] == [100] * 3 + [700] + [100] * 2
        harness.verify()
