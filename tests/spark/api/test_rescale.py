"""A node's state in another number of buckets, while its pipeline does not run."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import headwater
from headwater import Pipeline, agg, dedup, latest, scan, windows
from headwater.engine.home import checkpoint
from headwater.engine.state.state_manifests import StateManifests
from headwater.engine.stored_home import state_files
from headwater.errors import HeadwaterError, UsageError

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
ORDER = "id BIGINT, who STRING, n BIGINT, at TIMESTAMP"
NODES = ("unique", "totals", "newest", "minutes")


def add(state: dict[str, Any] | None, event: dict[str, Any]) -> dict[str, Any]:
    return {"total": (state["total"] if state else 0) + event["n"]}


def order(number: int) -> dict[str, Any]:
    return {"id": number, "who": f"c{number % 37}", "n": number % 11, "at": NOON + timedelta(seconds=number)}


def shop(home: Path) -> Pipeline:
    pipeline = Pipeline("shop", log=f"file:{home / 'log'}", home=home / "home")
    pipeline.source("orders", ORDER, event_time="at", key="who")

    @pipeline.stream(key="id")
    def unique(orders: DataFrame) -> DataFrame:
        """Each order once."""
        return orders.transform(dedup(on="id", within="1 hour"))

    @pipeline.view(key="who")
    def totals(orders: DataFrame) -> DataFrame:
        """What each has spent."""
        return orders.transform(scan(add, by="who", schema="total BIGINT"))

    @pipeline.view(key="who")
    def newest(orders: DataFrame) -> DataFrame:
        """The newest of each."""
        return orders.transform(latest(by="who"))

    @pipeline.view(key=["who", "window_start"])
    def minutes(orders: DataFrame) -> DataFrame:
        """By minute."""
        return orders.transform(windows.tumbling("1 minute", by="who", total=agg.sum("n")))

    @pipeline.view(key="id")
    def large(orders: DataFrame) -> DataFrame:
        """Those that are large."""
        return orders.filter("n > 5")

    return pipeline


@pytest.fixture
def running(tmp_path: Path, spark: SparkSession) -> Callable[[int], Pipeline]:
    """Sends some orders, lets the pipeline take them, and stops it."""
    pipeline, sent = shop(tmp_path), 0

    def run(count: int) -> Pipeline:
        nonlocal sent
        with headwater.open(pipeline.log) as log:
            if not sent:
                log.create_topic("orders", ORDER, key="who", event_time="at")
            with log.producer("orders") as producer:
                producer.send_batch([order(number // 2) for number in range(sent, sent + count)])
        sent += count
        headwater.run(pipeline, until_caught_up=True)
        return pipeline

    return run


def count_of(pipeline: Pipeline, node: str) -> int:
    states = StateManifests(state_files(pipeline.home / "nodes" / node / "v1", None))
    states.begin()
    return states.count_before(states.last_batch + 1)


def test_a_pipeline_that_is_rescaled_goes_on_as_if_it_had_not_been(
    running: Callable[[int], Pipeline],
) -> None:
    pipeline = running(200)
    for node, counts in zip(NODES, [(7, 2), (16, 1), (256, 3), (1, 5)], strict=True):
        before = count_of(pipeline, node)
        for count in counts:
            done = headwater.rescale(pipeline, node, count)
            assert (done.node, done.before, done.buckets) == (node, before, count)
            assert count_of(pipeline, node) == count
            before = count
    running(300)
    assert [count_of(pipeline, node) for node in NODES] == [2, 1, 3, 5]
    verdicts = headwater.verify(pipeline)
    assert all(verdict.ok and verdict.equal for verdict in verdicts)


def test_what_cannot_be_rescaled_is_refused(running: Callable[[int], Pipeline], tmp_path: Path) -> None:
    with pytest.raises(UsageError, match='view "totals" has no state yet'):
        headwater.rescale(shop(tmp_path), "totals", 4)
    pipeline = running(20)
    for name, count, said in (
        ("orders", 4, 'source "orders" has no buckets'),
        ("large", 4, 'view "large" has no state'),
        ("totals", 0, 'view "totals" cannot have 0 buckets'),
        ("totals", 257, 'view "totals" cannot have 257 buckets'),
        ("nothing", 4, "nothing"),
    ):
        with pytest.raises(HeadwaterError, match=said):
            headwater.rescale(pipeline, name, count)
    path = (pipeline.home / "nodes" / "totals" / "v1" / "checkpoint").resolve()
    (path / "commits" / str(checkpoint.last_done(path))).unlink()
    with pytest.raises(HeadwaterError, match="in the middle of batch"):
        headwater.rescale(pipeline, "totals", 4)
