"""Workers that start beside a pipeline that is being started, where it has much before it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import headwater
from headwater import Pipeline
from headwater.engine import query_restarts
from headwater.engine.batch import micro_batch
from headwater.engine.batch.worker_start import start_workers
from headwater.engine.runner import Runner


def workers_of(spark: SparkSession) -> list[tuple[int, bool]]:
    """Return the processes that a job's tasks run in, and whether they had loaded what tasks need."""

    def describe(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        loaded = "headwater.engine.batch.packed_read" in sys.modules
        for _ in batches:
            yield pa.RecordBatch.from_pydict({"pid": [os.getpid()], "loaded": [loaded]})

    tasks = 8
    found = spark.range(0, tasks, 1, tasks).mapInArrow(describe, "pid BIGINT, loaded BOOLEAN").collect()
    return [(row.pid, row.loaded) for row in found]


def test_the_next_job_finds_workers_that_have_loaded_what_they_need(spark: SparkSession) -> None:
    start_workers(spark).join(60)
    # Not all of them: workers of other tests that had less to load may be waiting for tasks, too.
    assert any(loaded for _, loaded in workers_of(spark))


def test_what_fails_there_is_left_to_the_first_micro_batch() -> None:
    class Stopped:
        sparkContext = None

    start_workers(Stopped()).join(60)  # type: ignore[arg-type]


@pytest.mark.parametrize(("rows", "started"), [(30, 1), (10, 0)])
def test_workers_are_started_for_a_large_backlog_alone(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: int, started: int
) -> None:
    calls: list[Any] = []
    monkeypatch.setattr(micro_batch, "FEW", 20)
    monkeypatch.setattr(query_restarts, "start_workers", calls.append)
    shop = Pipeline("shop", log=f"file:{tmp_path / 'log'}", home=tmp_path / "home")
    shop.source("orders", "id BIGINT")
    shop.sql("large", "SELECT id FROM orders WHERE id > 3", key="id")
    with headwater.open(shop.log) as log:
        log.create_topic("orders", "id BIGINT")
        with log.producer("orders") as producer:
            producer.send_batch(pa.table({"id": range(rows)}))
    for number in (started, 0):  # the second time it has caught up
        calls.clear()
        with Runner(shop, spark=spark) as runner:
            runner.catch_up()
        assert len(calls) == number
