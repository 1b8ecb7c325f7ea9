"""Queries that fail: the nodes that fail for a reason of their own are retried by themselves."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from headwater import Pipeline, latest
from headwater.errors import DiskFull, SinkRefused
from headwater.testing.harness import Harness
from headwater.views.sqlite import catalog

START = datetime(2026, 1, 1, tzinfo=UTC)


def order(number: int, who: str) -> dict[str, Any]:
    return {"id": number, "who": who, "at": START + timedelta(seconds=number)}


def shop() -> Pipeline:
    pipeline = Pipeline("shop")
    pipeline.source("orders", "id BIGINT, who STRING, at TIMESTAMP", event_time="at", key="who")

    @pipeline.view(key="who")
    def newest(orders: DataFrame) -> DataFrame:
        return orders.transform(latest(by="who"))

    pipeline.sql("seen", "SELECT id FROM orders", key="id")
    return pipeline


def ids(harness: Harness, name: str) -> list[int]:
    return sorted(row["id"] for row in harness.view(name))


def test_a_view_that_finds_no_room_keeps_no_other_waiting(spark: SparkSession) -> None:
    pipeline = shop()

    @pipeline.view(key="id")
    def large(orders: DataFrame) -> DataFrame:
        return orders.select("id", F.repeat("who", 100_000).alias("text"))

    with Harness(pipeline, spark=spark) as harness:
        harness.send("orders", order(1, "ada"))
        harness.step()
        limit_growth(harness, 50)
        harness.send("orders", order(2, "bob"))
        with pytest.raises(DiskFull, match="the disk is full"):
            harness.step()
        harness.send("orders", order(3, "cyd"))
        with pytest.raises(DiskFull, match="the disk is full"):
            harness.step()
        assert (ids(harness, "newest"), ids(harness, "large")) == ([1, 2, 3], [1])
        limit_growth(harness, 100_000)
        harness.step()
        assert ids(harness, "large") == [1, 2, 3]
        harness.verify()


def limit_growth(harness: Harness, pages: int) -> None:
    """Let the store of a harness grow by so many pages and no further."""
    db = harness._runner.store.of("large")._writer._db  # type: ignore[attr-defined]
    (now,) = db.execute("PRAGMA page_count").fetchone()
    db.execute(f"PRAGMA max_page_count={now + pages}")


def test_a_view_whose_table_is_gone_keeps_no_other_from_going_on(spark: SparkSession) -> None:
    with Harness(shop(), spark=spark) as harness:
        harness.send("orders", order(1, "ada"))
        harness.step()
        store = harness._runner.store.of("seen")  # type: ignore[attr-defined]
        with store._writer.transaction() as db:
            db.execute(f"DROP TABLE {catalog.find(db, 'seen').tables.rows}")
        harness.restart()
        harness.send("orders", order(2, "bob"))
        with pytest.raises(SinkRefused, match="is gone"):
            harness.step()
        harness.send("orders", order(3, "cyd"))
        with pytest.raises(SinkRefused, match="is gone"):
            harness.step()
        assert ids(harness, "newest") == [1, 2, 3]
