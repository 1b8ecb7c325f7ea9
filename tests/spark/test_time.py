"""Event time, from producers to views: redeploys make no spikes, and nobody else's clock makes a row late."""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from headwater import Pipeline, agg, dedup, joins, windows
from headwater.engine.plan.checking import check
from headwater.engine.proof.verify import verify
from headwater.engine.runner import Runner
from headwater.errors import PipelineError
from headwater.pipeline import targets
from headwater.testing.harness import Harness

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
PAGE = Path(__file__).parents[2] / "docs" / "time.md"


def test_of_the_two_views_of_the_page_the_one_by_processing_time_is_refused(spark: SparkSession) -> None:
    printed = re.search(r"^```python\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert printed is not None
    names: dict[str, Any] = {"__name__": "page"}
    exec(compile(printed[1], "time.md", "exec"), names)
    with pytest.raises(PipelineError, match=r'view "by_processing_time" .*current_timestamp'):
        check(names["shop"], spark)
    alone = Pipeline("shop")
    alone.source("requests", "url STRING, at TIMESTAMP", event_time="at", lateness="10 seconds")
    alone.view(key="window_start")(names["by_event_time"])
    assert "requests" in check(alone, spark)["by_event_time"].names


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


def readings(idle: str, place: Path) -> Pipeline:
    pipeline = Pipeline("meters", log=f"file:{place}")
    schema, guard = "meter STRING, at TIMESTAMP", "10 minutes"
    pipeline.source("readings", schema, event_time="at", idle=idle, max_ahead=guard)

    @pipeline.view(key=["meter", "window_start"])
    def by_minute(readings: DataFrame) -> DataFrame:
        return readings.transform(windows.tumbling("1 minute", by="meter", readings=agg.count(), late="side"))

    return pipeline


def test_fast_slow_joining_and_broken_producers_make_nobody_late(spark: SparkSession, tmp_path: Path) -> None:
    start = datetime.now(UTC).replace(second=0, microsecond=0) - timedelta(hours=1)

    def send(meter: str, *minutes: float) -> None:
        rows = [{"meter": meter, "at": start + timedelta(minutes=minute)} for minute in minutes]
        harness.send("readings", rows, producer=meter)

    with Harness(readings("10 seconds", tmp_path), spark=spark) as harness:
        send("fast", 0, 1, 2, 30)
        send("slow", 0)
        send("broken", 360)  # six hours ahead of the others, five of the wall clock
        harness.step()
        assert harness.view("by_minute") == []  # time has come as far as the slow one
        send("slow", 1, 1.5, 5)
        send("joins", 5.5, 6)  # after the others have begun, and behind them
        harness.step()
        counted = {(row["meter"], row["window_start"]): row["readings"] for row in harness.view("by_minute")}
        assert counted == {
            **{("fast", start + timedelta(minutes=minute)): 1 for minute in (0, 1, 2)},
            ("slow", start): 1,
            ("slow", start + timedelta(minutes=1)): 2,
        }
        send("slow", 40)
        send("joins", 40)
        send("fast", 41)
        harness.step()
        assert harness.late("by_minute") == []
        send("slow", 3)  # behind its own clock, and everybody's
        harness.step()
        (late,) = harness.late("by_minute")
        assert late["meter"] == "slow" and late["late_window_start"] == start + timedelta(minutes=3)
        ahead = [each.producer for each in harness._runner.nodes["by_minute"].node_run.counts.reached.ahead]
        assert ahead == ["broken"]
        harness.verify()


def test_a_producer_that_falls_silent_holds_time_back_for_a_while_only(
    spark: SparkSession, tmp_path: Path
) -> None:
    start = datetime.now(UTC).replace(second=0, microsecond=0) - timedelta(hours=1)
    with Runner(readings("1 second", tmp_path), spark=spark) as runner:
        for meter, minutes in (("silent", (0,)), ("talks", (0, 5))):
            with runner.log.producer("readings", id=meter) as producer:
                rows = [{"meter": meter, "at": start + timedelta(minutes=minute)} for minute in minutes]
                producer.send_batch(rows)
        runner.catch_up()
        view, end = runner.store.view("by_minute"), time.monotonic() + 120
        while not view.count() and time.monotonic() < end:  # nothing arrives, and yet time goes on
            time.sleep(0.1)
            runner.catch_up()
        assert [(row["meter"], row["window_start"]) for row in view.scan().to_pylist()] == [
            ("silent", start),
            ("talks", start),
        ]


def paid_orders(place: Path) -> Pipeline:
    pipeline = Pipeline("shop", log=f"file:{place}")
    for name in ("orders", "payments"):
        pipeline.source(name, "id BIGINT, customer STRING, at TIMESTAMP", event_time="at", idle="1 second")
    customers = {"key": "customer", "event_time": "at", "idle": "1 second"}
    pipeline.table("customers", "customer STRING, tier STRING, at TIMESTAMP", **customers)

    @pipeline.stream()
    def unique(orders: DataFrame) -> DataFrame:
        return orders.transform(dedup("id", within="1 day"))

    @pipeline.view(key="id")
    def rich(unique: DataFrame, customers: DataFrame) -> DataFrame:
        return unique.transform(joins.as_of(customers, on="customer"))

    @pipeline.view(key="id")
    def paid(unique: DataFrame, payments: DataFrame) -> DataFrame:
        paid = payments.select("id", F.col("at").alias("paid"))
        return unique.transform(joins.within(paid, on="id", after="1 minute", how="left"))

    return pipeline


def test_inputs_that_fall_silent_do_not_hold_the_others_for_ever(spark: SparkSession, tmp_path: Path) -> None:
    start = datetime.now(UTC).replace(second=0, microsecond=0) - timedelta(hours=1)

    def send(topic: str, *rows: tuple[Any, ...]) -> None:
        names = runner.log.topic(topic).schema.names
        told = [(*row[:-1], start + timedelta(minutes=row[-1])) for row in rows]
        with runner.log.producer(topic) as producer:
            producer.send_batch([dict(zip(names, row, strict=True)) for row in told])

    def wait_for(name: str, wanted: dict[int, object]) -> None:
        runner.catch_up()
        view, end = runner.store.view(name), time.monotonic() + 120
        while view.count() < len(wanted) and time.monotonic() < end:
            time.sleep(0.2)
            runner.catch_up()
        column = {"rich": "tier", "paid": "paid"}[name]
        assert {row["id"]: row[column] for row in view.scan().to_pylist()} == wanted

    with Runner(paid_orders(tmp_path), spark=spark) as runner:
        send("customers", ("ada", "gold", 0))
        send("payments", (0, "eve", 0))
        send("orders", (1, "ada", 5), (2, "ada", 10))
        wait_for("rich", {1: "gold"})
        wait_for("paid", {1: None})
        send("payments", (2, "ada", 10.5))
        send("orders", (3, "ada", 20))
        wait_for("rich", {1: "gold", 2: "gold"})
        wait_for("paid", {1: None, 2: start + timedelta(minutes=10.5)})
    with Runner(paid_orders(tmp_path), spark=spark) as runner:
        send("customers", ("ada", "silver", 25))
        send("orders", (4, "ada", 30), (5, "ada", 50))
        wait_for("rich", {1: "gold", 2: "gold", 3: "gold", 4: "silver"})
        wait_for("paid", {1: None, 2: start + timedelta(minutes=10.5), 3: None, 4: None})
        assert all(verify(runner, name).ok for name in runner.nodes)
        assert [running.node_run.counts.late for running in runner.nodes.values()] == [0, 0, 0]
