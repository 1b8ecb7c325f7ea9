"""Columns that are added to a source, and the topic of what came too late for a view before that."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import headwater
from headwater import Pipeline, agg, windows
from headwater.engine.home.view_locations import store_of
from headwater.engine.inspection import inspect_pipeline
from headwater.engine.proof.verify import verify
from headwater.engine.runner import Runner
from headwater.errors import PipelineError
from headwater.log.embedded.log import EmbeddedLog
from headwater.views.combined import CombinedViews

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
NARROW = "k BIGINT, x BIGINT, at TIMESTAMP"


def sums(url: str, columns: str) -> Pipeline:
    pipeline = Pipeline("sums", log=url)
    pipeline.source("events", columns, event_time="at")

    @pipeline.view(key=["k", "window_start"])
    def totals(events: DataFrame) -> DataFrame:
        return events.transform(windows.tumbling("10 seconds", by="k", late="side", s=agg.sum("x")))

    return pipeline


@pytest.mark.parametrize("kind", [Runner, inspect_pipeline])
def test_what_was_opened_is_closed_where_the_rest_fails(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: Callable[..., Any]
) -> None:
    pipeline = sums(f"file:{tmp_path / 'log'}", NARROW)
    with headwater.open(pipeline.log) as log:
        log.create_topic("events", NARROW, event_time="at")
    store_of(pipeline).close()  # an inspection needs it
    closed = []

    def record(owner: type[Any]) -> None:
        close = owner.close
        monkeypatch.setattr(owner, "close", lambda self: (closed.append(owner), close(self)))

    for owner in (EmbeddedLog, CombinedViews):
        record(owner)
    monkeypatch.setattr("headwater.engine.inspection.Versions", refused)
    monkeypatch.setattr("headwater.engine.assembly.Rebuilding", refused)
    with pytest.raises(PipelineError, match="refused"):
        kind(pipeline, spark=spark)
    assert closed == [CombinedViews, EmbeddedLog]


def refused(*arguments: Any) -> None:
    raise PipelineError("refused")


def test_late_rows_with_other_columns_than_before_are_refused_when_a_view_begins(
    spark: SparkSession, tmp_path: Path
) -> None:
    url = f"file:{tmp_path / 'log'}"

    def run(pipeline: Pipeline, *seconds: int) -> None:
        with Runner(pipeline, spark=spark, patient=True) as runner:
            with runner.log.producer("events", id="test") as producer:
                events: list[dict[str, Any]] = [
                    {"k": 1, "x": 1, "at": NOON + timedelta(seconds=each)} for each in seconds
                ]
                producer.send_batch(events)
            runner.catch_up()

    run(sums(url, NARROW), 0, 100)
    run(sums(url, NARROW), 1, 200)
    wide = sums(url, f"{NARROW}, y BIGINT")
    with headwater.open(url) as log:
        log.alter_topic("events", schema=f"{NARROW}, y BIGINT")
    with Runner(wide, spark=spark, patient=True) as runner:
        with pytest.raises(PipelineError, match="has changed: the columns that go into its operator"):
            verify(runner, "totals")
        with pytest.raises(PipelineError, match="has other columns than before") as refused:
            runner.rebuild("totals")
        assert "headwater topic delete sums.totals.late" in str(refused.value)
        runner.log.delete_topic("sums.totals.late")
    with Runner(wide, spark=spark, patient=True) as runner:
        runner.rebuild("totals")
    run(wide, 2, 300)
    with Runner(wide, spark=spark, patient=True) as runner:
        assert [row["x"] for batch in runner.log.read("sums.totals.late") for row in batch.to_pylist()] == [1]
        assert verify(runner, "totals").ok
