"""Nodes that are added later come to share the query of the others, wherever each of them was."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from headwater import Pipeline, latest, scan
from headwater.engine.home import checkpoint_merge
from headwater.engine.proof.verify import verify
from headwater.engine.runner import Runner
from headwater.errors import UsageError
from runner_kit import running

START = datetime(2026, 1, 1, tzinfo=UTC)


def add(state: dict[str, Any] | None, event: dict[str, Any]) -> dict[str, Any]:
    return {"n": (state or {"n": 0})["n"] + 1}


def shop(root: Path, *names: str) -> Pipeline:
    """Return a pipeline with some of its nodes."""
    pipeline = Pipeline("shop", log=f"file:{root / 'log'}", home=root / "home")
    pipeline.source("orders", "id BIGINT, who STRING, at TIMESTAMP", event_time="at", key="who")
    pipeline.source("clicks", "id BIGINT, who STRING, at TIMESTAMP", event_time="at", key="who")

    def counts(orders: DataFrame) -> DataFrame:
        return orders.transform(scan(add, by="who", schema="n BIGINT"))

    def newest(orders: DataFrame) -> DataFrame:
        return orders.transform(latest(by="who"))

    def clicked(clicks: DataFrame) -> DataFrame:
        return clicks.filter("id >= 0")

    for each, key in ((counts, "who"), (newest, "who"), (clicked, "id")):
        if each.__name__ in names:
            pipeline.view(key=key)(each)
    return pipeline


def send(runner: Runner, first: int) -> None:
    for topic in ("orders", "clicks"):
        with runner.log.producer(topic, id="test") as producer:
            told = [
                {"id": n, "who": f"w{n % 3}", "at": START + timedelta(seconds=n)}
                for n in range(first, first + 9)
            ]
            producer.send_batch(told)
            producer.mark(START + timedelta(seconds=first + 9))


def counted(runner: Runner) -> int:
    try:
        return sum(row["n"] for row in runner.store.view("counts").scan().to_pylist())
    except UsageError:  # it has not begun yet
        return 0


@pytest.mark.parametrize("ahead", [None, 0, 1])
def test_nodes_added_one_by_one_end_in_one_query(
    spark: SparkSession, tmp_path: Path, ahead: int | None
) -> None:
    names = ("newest", "counts", "clicked")
    for number in (1, 2, 3):
        with Runner(shop(tmp_path, *names[:number]), spark=spark, patient=True) as runner:
            send(runner, number * 10)
            runner.catch_up()
    for number in (4, 5):
        with Runner(shop(tmp_path, *names), spark=spark, patient=True) as runner:
            send(runner, number * 10)
            if number == 4 and ahead is not None:  # one of two queries goes on before the others
                query = list(runner.queries.values())[ahead]
                runner._start(query)
                assert query.spark is not None
                query.spark.processAllAvailable()
            runner.catch_up()
            assert len(runner.queries) == 1
            assert counted(runner) == number * 9
            assert runner.store.view("clicked").count() == number * 9
            assert all(verify(runner, name).ok for name in names)


def test_a_query_that_is_far_behind_goes_on_by_itself(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for names in (("newest",), ("newest", "counts")):
        with Runner(shop(tmp_path, *names), spark=spark, patient=True) as runner:
            send(runner, len(names) * 10)
            runner.catch_up()
    monkeypatch.setattr("headwater.engine.query_merging.NEAR_ROWS", 5)
    with Runner(shop(tmp_path, *names), spark=spark, patient=True) as runner:
        send(runner, 30)
        query = next(iter(runner.queries.values()))
        runner._start(query)
        assert query.spark is not None
        query.spark.processAllAvailable()
        runner.merge_queries()
        assert len(runner.queries) == 2
        runner.catch_up()
        assert len(runner.queries) == 2  # it was too far behind when the run began
        assert counted(runner) == 27
        found = [checkpoint_merge.stopped_at(path, query.upstreams) for path, query in runner.queries.items()]
        assert checkpoint_merge.are_aligned([each for each in found if each is not None])
        runner.merge_queries()  # as it does now and then while it runs
        assert len(runner.queries) == 1
        send(runner, 40)
        runner.catch_up()
        assert counted(runner) == 36


def test_queries_become_one_while_they_run(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Runner(shop(tmp_path, "newest"), spark=spark, patient=True) as runner:
        send(runner, 10)
        runner.catch_up()
    monkeypatch.setattr("headwater.engine.runner.MERGE_SECONDS", 0.5)
    with Runner(shop(tmp_path, "newest", "counts"), spark=spark, patient=True) as runner:
        with running(runner):
            sent = 1
            while len(runner.queries) > 1 or counted(runner) < sent * 9:
                assert sent < 300, "they have not become one"
                sent += 1
                send(runner, sent * 10)
                time.sleep(0.2)
        runner.catch_up()
        assert counted(runner) == sent * 9
        assert all(verify(runner, name).ok for name in ("newest", "counts"))
