"""A record whose event time cannot be computed is a dead letter, or stops the node: as ``on_error`` says."""

from __future__ import annotations

import pytest
from pyspark.sql import DataFrame, SparkSession

import headwater
from headwater import Pipeline, agg, windows
from headwater.engine.proof.verify import verify
from headwater.engine.runner import Runner
from headwater.errors import HeadwaterError
from headwater.pipeline.node import OnError

SCHEMA = "id BIGINT, day STRING"
DAYS = ["2026-01-01", "2026-01-01", "the first", "2026-01-02", None, "31 June", "2026-01-03"]


def pipeline(url: str, on_error: OnError) -> Pipeline:
    web = Pipeline("web", log=url)
    web.source("events", SCHEMA, event_time="to_timestamp(day)")

    @web.view(key="window_start", on_error=on_error)
    def daily(events: DataFrame) -> DataFrame:
        """How many there are each day."""
        return events.transform(windows.tumbling("1 day", n=agg.count()))

    return web


def fill(url: str) -> None:
    with headwater.open(url) as log:
        log.create_topic("events", SCHEMA)
        with log.producer("events") as producer:
            producer.send_batch([{"id": at, "day": day} for at, day in enumerate(DAYS)])


@pytest.mark.parametrize("in_workers", [False, True])
def test_what_cannot_be_computed_is_set_aside_with_what_it_holds(
    spark: SparkSession, url: str, in_workers: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if in_workers:
        monkeypatch.setattr("headwater.engine.batch.micro_batch.FEW", 0)
    fill(url)
    web = pipeline(url, "dead_letter")
    with Runner(web, spark=spark) as runner:
        runner.catch_up()
        assert verify(runner, "daily").ok
    letters = headwater.dead_letters(web)
    assert [(each.offset, each.record) for each in letters] == [
        (2, '{"id":2,"day":"the first"}'),
        (5, '{"id":5,"day":"31 June"}'),
    ]
    assert "to_timestamp(day)" in letters[0].error
    with headwater.open_views(web) as views:
        assert [row["n"] for row in views["daily"].scan().to_pylist()] == [2, 1]  # the last day goes on


def test_it_stops_a_node_that_says_so_and_names_the_record(spark: SparkSession, url: str) -> None:
    fill(url)
    with Runner(pipeline(url, "stop"), spark=spark) as runner, pytest.raises(HeadwaterError) as stopped:
        runner.catch_up()
    assert "cannot read 2 records" in str(stopped.value)
    assert "offset 2" in str(stopped.value)
    assert "day is the first" in str(stopped.value)
