"""How far a pipeline has got, read from what its nodes have written, without Spark."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import headwater
from headwater import Log, Pipeline, Position
from headwater.engine.figures.progress import progress
from headwater.engine.home import node_progress
from headwater.engine.home.checkpoint import ClockSkew
from headwater.engine.home.node_progress import NodeProgress
from headwater.errors import HeadwaterError
from headwater.sinks import Batch
from headwater.views import ViewStore

CLOCK = 1_767_323_045_000_000


@pytest.fixture
def pipeline(tmp_path: Path) -> Pipeline:
    shop = Pipeline("shop", log=f"file:{tmp_path}/data")
    shop.source("orders", "id BIGINT, at TIMESTAMP", event_time="at")

    @shop.stream(key="id")
    def unique(orders: object) -> object:
        raise AssertionError("progress calls no function")

    @shop.view(key="id")
    def newest(unique: object) -> object:
        raise AssertionError("progress calls no function")

    return shop


@pytest.fixture
def log(pipeline: Pipeline) -> Iterator[Log]:
    """A log with ten orders."""
    with headwater.open(pipeline.log) as log:
        log.create_topic("orders", "id BIGINT, at TIMESTAMP", event_time="at")
        with log.producer("orders") as producer:
            producer.send_batch([{"id": n} for n in range(10)])
        yield log


def write(
    pipeline: Pipeline,
    node: str,
    batch: int,
    topic: str,
    offset: int,
    *,
    version: int = 1,
    claims: dict[str, Any] | None = None,
) -> Path:
    """Leave what Spark and a node leave after a batch."""
    place = pipeline.home / "nodes" / node / f"v{version}" / "checkpoint"
    for folder in ("offsets", "commits"):
        (place / folder).mkdir(parents=True, exist_ok=True)
    source = {
        "topic": topic,
        "id": "8b1f",
        "timed": True,
        "offsets": {"0": offset},
        "clock": CLOCK,
        "claims": claims or {},
        "heard": CLOCK,
        "silent": False,
        "furthest": 0,
        "lateness": 0,
        "silence": 0,
    }
    about = {"batchWatermarkMs": 0}
    (place / "offsets" / str(batch)).write_text(
        "\n".join(["v1", json.dumps(about), json.dumps({topic: source})])
    )
    (place / "commits" / str(batch)).write_text("v1\n{}")
    os.utime(place / "commits" / str(batch), (1000, 1000))
    node_progress.write(place, {place.parent: NodeProgress(batch, {topic: f"{topic}:0={offset}"})})
    return place


def test_a_pipeline_that_has_not_run_is_told_as_such(pipeline: Pipeline, log: Log) -> None:
    with pytest.raises(HeadwaterError, match='pipeline "shop" has not run yet') as caught:
        progress(pipeline, log)
    assert caught.value.hint == "run it with `headwater run test_progress.py`"
    assert not pipeline.home.exists()


def test_a_node_is_as_far_as_its_last_batch_that_was_done(pipeline: Pipeline, log: Log) -> None:
    write(pipeline, "unique", 0, "orders", 3)
    place = write(pipeline, "unique", 1, "orders", 6)
    (place / "offsets" / "2").write_text("planned, not done")
    unique, newest = progress(pipeline, log)
    assert (unique.batch, unique.ended, unique.clock) == (1, 1000, CLOCK)
    assert unique.positions == (Position("orders", {0: 6}),)
    assert (unique.lag, unique.rows) == (4, None)
    assert (newest.batch, newest.ended, newest.clock, newest.positions) == (None, None, None, ())
    assert newest.lag == 0, "its topic is not there yet"


def test_a_view_is_that_of_the_version_in_force(pipeline: Pipeline, log: Log) -> None:
    write(pipeline, "newest", 7, "shop.unique", 50)
    write(pipeline, "newest", 0, "shop.unique", 5, version=2)
    with ViewStore(pipeline.home / "views.db") as store:
        for version in (1, 2):
            sink = store.sink("newest", "id BIGINT", "id", version=version)
            sink.begin()
            sink.commit(Batch(0, pa.table({"id": list(range(version))})))
        store.publish("newest", 2)
        newest = progress(pipeline, log)[1]
    assert (newest.batch, newest.rows) == (0, 2)


def test_a_view_that_was_declared_since_has_no_rows_yet(pipeline: Pipeline, log: Log) -> None:
    write(pipeline, "unique", 0, "orders", 3)
    ViewStore(pipeline.home / "views.db").close()
    assert progress(pipeline, log)[1].rows is None


def test_a_checkpoint_that_spark_is_just_replacing_is_not_an_error(pipeline: Pipeline, log: Log) -> None:
    place = write(pipeline, "unique", 0, "orders", 3)
    (place / "offsets" / "0").unlink()
    assert progress(pipeline, log)[0].lag == 7


def test_what_a_query_has_done_without_a_node_is_not_the_nodes(pipeline: Pipeline, log: Log) -> None:
    place = write(pipeline, "unique", 4, "orders", 10)
    node_progress.write(place, {place.parent: NodeProgress()})
    unique, _ = progress(pipeline, log)
    assert (unique.batch, unique.ended, unique.positions, unique.lag) == (None, None, (), 10)


def test_a_node_that_its_query_has_left_behind_is_where_it_was(pipeline: Pipeline, log: Log) -> None:
    place = write(pipeline, "unique", 4, "orders", 10)
    node_progress.write(place, {place.parent: NodeProgress(2, {"orders": "orders:0=4"})})
    unique, _ = progress(pipeline, log)
    assert (unique.batch, unique.positions, unique.lag) == (2, (Position("orders", {0: 4}),), 6)


def test_producers_that_are_ahead_of_time_are_told_with_the_nodes_that_read_them(
    pipeline: Pipeline, log: Log
) -> None:
    right = {"time": CLOCK, "received": CLOCK}
    claims = {"0": {"till-7": {**right, "ahead": 3_600_000_000}, "till-8": right}}
    write(pipeline, "unique", 0, "orders", 3, claims=claims)
    unique, newest = progress(pipeline, log)
    assert unique.ahead == (ClockSkew("orders", 0, "till-7", 3_600_000_000),)
    assert newest.ahead == ()
