"""The figures of nodes as they run, fail, wait and go on, read from a runner without Spark."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.unit.engine.figures.test_progress import write

import headwater
from headwater import Pipeline, Position
from headwater.engine.figures.status import Meter, RowRate, Status
from headwater.engine.home.checkpoint import Input, InputProgress
from headwater.engine.home.node_progress import NodeProgress
from headwater.errors import HeadwaterError
from headwater.pipeline.node import Node

ERROR = HeadwaterError("it failed")


class Fake:
    """A runner with one node, ``seen``, whose fields a test sets as a runner would."""

    def __init__(self, pipeline: Pipeline, log: headwater.Log):
        self.pipeline, self.log = pipeline, log
        self.counts = SimpleNamespace(
            batches=0,
            rows=0,
            out=0,
            late=0,
            duplicates=0,
            seconds=0.0,
            states={},
            held={},
            largest_keys=lambda: (),
            reached=None,
        )
        place = pipeline.home / "nodes" / "seen" / "v1" / "checkpoint"
        node_run = SimpleNamespace(
            node=pipeline["seen"], counts=self.counts, checkpoint=place, done=NodeProgress()
        )
        self.query = SimpleNamespace(spark=None, broken=False, has_progressed=False)
        self.running = SimpleNamespace(node_run=node_run, query=self.query, error=None)
        self.nodes = {"seen": self.running}

    def dead_letters(self, node: Node) -> SimpleNamespace:
        return SimpleNamespace(topic=f"shop.{node.name}.dead")

    def read(self) -> Status:
        runner: Any = self
        return Meter(runner).read()[0]

    def did(self, offset: int) -> None:
        self.query.has_progressed = True
        self.counts.reached = InputProgress({"orders": Input(Position("orders", {0: offset}))})


@pytest.fixture
def runner(tmp_path: Path) -> Iterator[Fake]:
    """Ten orders are there, and nothing has run."""
    shop = Pipeline("shop", log=f"file:{tmp_path}/data")
    shop.source("orders", "id BIGINT")
    shop.sql("seen", "SELECT * FROM orders", key="id", on_error="dead_letter")
    with headwater.open(shop.log) as log:
        log.create_topic("orders", "id BIGINT")
        with log.producer("orders") as producer:
            producer.send_batch([{"id": n} for n in range(10)])
        yield Fake(shop, log)


def test_a_node_that_was_never_started_is_behind_by_everything(runner: Fake) -> None:
    status = runner.read()
    assert (status.state, status.lag, status.clock, status.error) == ("starting", 10, None, None)


def test_a_node_that_was_just_started_is_as_far_as_its_last_run(runner: Fake) -> None:
    write(runner.pipeline, "seen", 0, "orders", 7)
    runner.query.spark = object()
    assert (runner.read().state, runner.read().lag) == ("starting", 3)


def test_a_node_runs_when_it_has_done_a_batch_or_has_nothing_to_do(runner: Fake) -> None:
    runner.query.spark = object()
    runner.did(4)
    assert (runner.read().state, runner.read().lag) == ("running", 6)
    write(runner.pipeline, "seen", 0, "orders", 10)
    runner.query.has_progressed, runner.counts.reached = False, None
    assert (runner.read().state, runner.read().lag) == ("running", 0)


def test_a_failed_node_waits_and_tells_why_until_it_has_gone_on(runner: Fake) -> None:
    runner.did(4)
    runner.running.error, runner.query.has_progressed = ERROR, False
    assert (runner.read().state, runner.read().error) == ("waiting", ERROR)
    runner.query.spark = object()
    assert (runner.read().state, runner.read().error) == ("starting", ERROR)
    runner.did(6)
    assert (runner.read().state, runner.read().error) == ("running", None)


def test_a_node_that_is_not_tried_again_is_broken(runner: Fake) -> None:
    runner.running.error, runner.query.broken = ERROR, True
    assert (runner.read().state, runner.read().error) == ("broken", ERROR)


def test_what_was_set_aside_is_counted_in_all_runs(runner: Fake) -> None:
    assert runner.read().dead == 0
    runner.log.create_topic("shop.seen.dead", "offset BIGINT")
    with runner.log.producer("shop.seen.dead") as producer:
        producer.send_batch([{"offset": 1}, {"offset": 2}])
    assert runner.read().dead == 2


def test_a_rate_is_taken_over_the_last_seconds() -> None:
    rate = RowRate()
    assert rate.over(0, 100.0) == 0.0
    assert rate.over(50, 101.0) == 50.0
    assert [rate.over(50, 101.0 + second) for second in range(1, 8)][-1] == 0.0


def test_a_count_that_begins_anew_has_no_rate_below_nothing() -> None:
    rate, now = RowRate(), time.monotonic()
    rate.over(1000, now)
    assert rate.over(10, now + 1) == 0.0
    assert rate.over(30, now + 2) == 20.0


@pytest.mark.parametrize(
    ("rows", "late", "told"), [(99, 99, None), (200, 2, None), (200, 3, "1.5% of the rows")]
)
def test_too_many_late_rows_are_told(runner: Fake, rows: int, late: int, told: str | None) -> None:
    runner.counts.rows, runner.counts.late = rows, late
    alert = runner.read().alert
    assert alert is None if told is None else str(alert).startswith(f'{told} of view "seen" came too late')
