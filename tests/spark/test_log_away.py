"""A log that is away for a while is waited for, however long; the pipeline then goes on where it was."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

import headwater
from headwater import Log, Pipeline
from headwater.engine.batch import retry
from headwater.engine.runner import Runner
from headwater.errors import is_transient
from runner_kit import running


def shop(log: Path, home: Path) -> Pipeline:
    pipeline = Pipeline("shop", log=f"file:{log}", home=home)
    pipeline.source("orders", "id BIGINT")

    @pipeline.stream()
    def even(orders: DataFrame) -> DataFrame:
        return orders.where("id % 2 = 0")

    @pipeline.view(key="id")
    def seen(orders: DataFrame) -> DataFrame:
        return orders

    return pipeline


def send(log: Log, first: int) -> None:
    with log.producer("orders") as producer:
        producer.send_batch([{"id": id} for id in range(first, first + 10)])


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.1)


@pytest.mark.timeout(180)
def test_a_live_pipeline_outlasts_a_log_whose_directory_is_away(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headwater.engine.batch.retry.MAX_BACKOFF_SECONDS", 0.5)
    place, away = tmp_path / "log", tmp_path / "away"
    with Runner(shop(place, tmp_path / "home"), spark=spark) as runner, headwater.open(runner.log.url) as log:
        send(log, 0)
        with running(runner):
            until(lambda: runner.store.names() == ["seen"] and runner.store.view("seen").count() == 10)
            place.rename(away)
            until(lambda: all(each.retry.failures > retry.MAX_ATTEMPTS for each in runner.queries.values()))
            assert all(is_transient(each.error) for each in runner.queries.values())
            assert not place.exists()  # nobody has begun an empty log there
            away.rename(place)
            send(log, 10)
            until(lambda: runner.store.view("seen").count() == 20)
            until(lambda: sum(len(batch) for batch in log.read("shop.even")) == 10)
