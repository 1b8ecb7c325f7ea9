"""What runs where: DataFrame code in Spark's workers, operators and folds there or in the driver, by size."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from headwater import Pipeline, scan
from headwater.engine.batch import micro_batch
from headwater.testing.harness import Harness

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def site() -> Pipeline:
    pipeline = Pipeline("site")
    pipeline.source("requests", "id BIGINT, at TIMESTAMP", event_time="at")

    def fold(state: Any, request: dict[str, Any]) -> dict[str, int]:
        return {"folded_by": os.getpid(), "called_by": request["called_by"]}

    @pipeline.view(key="id")
    def processes(requests: DataFrame) -> DataFrame:
        called = requests.withColumn("called_by", F.udf(lambda number: os.getpid(), "bigint")("id"))
        return called.transform(scan(fold, by="id", schema="folded_by BIGINT, called_by BIGINT"))

    return pipeline


@pytest.mark.parametrize(("records", "by_driver"), [(10, True), (11, False)])
def test_the_driver_folds_what_is_small_and_workers_the_rest_and_call_all_udfs(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, records: int, by_driver: bool
) -> None:
    assert micro_batch.FEW == 20_000
    monkeypatch.setattr(micro_batch, "FEW", 10)
    with Harness(site(), spark=spark) as harness:
        rows = [{"id": n, "at": NOON + timedelta(seconds=n)} for n in range(records)]
        harness.send("requests", [*rows[1:], rows[0]])
        harness.advance(NOON + timedelta(hours=1))
        harness.step()
        found = harness.view("processes")
    assert len(found) == records
    assert {row["folded_by"] == os.getpid() for row in found} == {by_driver}
    assert os.getpid() not in {row["called_by"] for row in found}
