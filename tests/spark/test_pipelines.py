"""Whole pipelines over the harness: operators, derived streams, late rows, restarts, and the proof."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from headwater import Pipeline, dedup, latest, scan
from headwater.errors import HeadwaterError, PipelineError
from headwater.testing.harness import Harness

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def at(seconds: int) -> datetime:
    return NOON + timedelta(seconds=seconds)


def add(state: dict[str, Any] | None, event: dict[str, Any]) -> dict[str, Any]:
    before = state or {"n": 0, "total": 0.0}
    return {"n": before["n"] + 1, "total": before["total"] + event["amount"]}


def shop() -> Pipeline:
    pipeline = Pipeline("shop")
    pipeline.source(
        "orders", "id BIGINT, who STRING, amount DOUBLE, at TIMESTAMP", event_time="at", key="who"
    )

    @pipeline.stream(key="who")
    def unique(orders: DataFrame) -> DataFrame:
        """Each order once."""
        return orders.transform(dedup(on="id", within="1 hour"))

    @pipeline.view(key="who")
    def totals(orders: DataFrame) -> DataFrame:
        """What each has spent so far."""
        folded = orders.transform(scan(add, by="who", schema="n BIGINT, total DOUBLE"))
        return folded.withColumn("mean", F.col("total") / F.col("n"))

    @pipeline.view(key="who")
    def newest(orders: DataFrame) -> DataFrame:
        """The last order of each."""
        return orders.transform(latest(by="who"))

    pipeline.sql("large", "SELECT id, who, amount FROM unique WHERE amount >= 5", key="id")
    return pipeline


@pytest.fixture
def harness(spark: SparkSession) -> Iterator[Harness]:
    with Harness(shop(), spark=spark, limit=4) as harness:
        yield harness


def order(number: int, who: str, amount: float, seconds: int) -> dict[str, Any]:
    return {"id": number, "who": who, "amount": amount, "at": at(seconds)}


def test_a_pipeline_keeps_its_views_and_streams_right(harness: Harness) -> None:
    harness.send("orders", [order(1, "ada", 1, 10), order(2, "bob", 5, 30), order(1, "ada", 1, 10)])
    harness.send("orders", [order(3, "ada", 2, 20), order(4, "ada", 7, 40), order(5, "bob", 9, 50)])
    harness.advance(at(45))
    harness.step()
    assert [row["id"] for row in harness.stream("unique")] == [1, 2, 3, 4, 5]
    totals = {row["who"]: (row["n"], row["total"], row["mean"]) for row in harness.view("totals")}
    assert totals == {"ada": (4, 11.0, 2.75), "bob": (1, 5.0, 5.0)}
    assert {row["who"]: row["id"] for row in harness.view("newest")} == {"ada": 4, "bob": 5}
    assert {row["id"] for row in harness.view("large")} == {2, 4, 5}
    harness.verify()


def test_a_late_row_is_kept_apart_and_the_proof_knows_it(harness: Harness) -> None:
    harness.send("orders", order(1, "ada", 1, 100))
    harness.advance(at(101))
    harness.step()
    harness.send("orders", order(2, "ada", 2, 50))
    harness.advance(at(200))
    harness.step()
    assert [row["id"] for row in harness.late("totals")] == [2]
    assert [(row["n"], row["total"]) for row in harness.view("totals")] == [(1, 1.0)]
    harness.verify()


def test_a_restart_goes_on_where_it_was(harness: Harness) -> None:
    harness.send("orders", [order(n, "ada", 1, n) for n in range(6)])
    harness.advance(at(3))
    harness.step()
    harness.restart()
    harness.send("orders", [order(n, "ada", 1, n) for n in range(5, 12)])
    harness.advance(at(100))
    harness.step()
    assert [row["n"] for row in harness.view("totals")] == [13]
    assert sorted(row["id"] for row in harness.stream("unique")) == list(range(12))
    harness.verify()


def test_a_wrong_view_is_found(harness: Harness) -> None:
    harness.send("orders", [order(1, "ada", 1, 10), order(2, "bob", 5, 30)])
    harness.step()
    store = harness._runner.store
    with store._writer.transaction() as db:
        table = next(iter(db.execute("SELECT name FROM sqlite_master WHERE name LIKE '%newest%'")))[0]
        db.execute(f'DELETE FROM "{table}"')  # noqa: S608
    with pytest.raises(HeadwaterError, match="is not what a batch"):
        harness.verify()


def test_an_edit_that_the_state_cannot_survive_is_refused(harness: Harness, spark: SparkSession) -> None:
    harness.send("orders", order(1, "ada", 1, 10))
    harness.step()
    changed = Pipeline("shop", log=harness.pipeline.log, home=harness.pipeline.home)
    changed.source("orders", "id BIGINT, who STRING, amount DOUBLE, at TIMESTAMP", event_time="at", key="who")

    @changed.stream(key="who")
    def unique(orders: DataFrame) -> DataFrame:
        return orders.transform(dedup(on="id", within="2 hours"))

    from headwater.engine.runner import Runner

    with pytest.raises(PipelineError, match="has changed: its operator's settings") as caught:
        Runner(changed, spark=spark)
    assert "headwater rebuild unique" in (caught.value.hint or "")
