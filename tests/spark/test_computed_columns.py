"""A pipeline whose source computes its event time, its key and its metadata from what records have."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import headwater
from headwater import Pipeline, agg, windows
from headwater.engine.proof.verify import verify
from headwater.engine.runner import Runner
from headwater.errors import PipelineError

SCHEMA = "user STRING, amount DOUBLE, at BIGINT"
MINUTE = 60_000
NOON = 1_767_268_800_000
"""2026-01-01 12:00 UTC, in milliseconds."""


@pytest.mark.parametrize("limit", [None, 7])
def test_a_window_over_epoch_milliseconds_is_exact_and_proved(
    spark: SparkSession, url: str, limit: int | None
) -> None:
    web = Pipeline("web", log=url)
    web.source("events", SCHEMA, event_time="timestamp_millis(at)", lateness="10 seconds", metadata="_offset")

    @web.view(key=["user", "window_start"])
    def spent(events: DataFrame) -> DataFrame:
        """What each user spends in a minute."""
        return events.transform(
            windows.tumbling(
                "1 minute", by="user", n=agg.count(), total=agg.sum("amount"), last=agg.max("offset")
            )
        )

    @web.view(key="number")
    def raw(events: DataFrame) -> DataFrame:
        """Each event with its time."""
        return events.select(F.col("offset").alias("number"), "at", "event_time")

    with headwater.open(url) as log:
        log.create_topic("events", SCHEMA)
        send(log, [(n % 3, NOON + n * 4000) for n in range(40)])
        with Runner(web, spark=spark, limit=limit) as runner:
            runner.catch_up()
            send(log, [(0, NOON + 10 * MINUTE), (1, NOON)])  # the second is late
            runner.catch_up()
            assert verify(runner, "spent").ok
    with headwater.open_views(web) as views:
        rows = views["spent"].scan().to_pylist()
        times = views["raw"].scan().to_pylist()
    assert {(row["user"], row["window_start"].minute): row["n"] for row in rows} == expected()
    assert [row["number"] for row in times] == list(range(42))
    assert all(row["event_time"].timestamp() * 1000 == row["at"] for row in times)


def expected() -> dict[tuple[str, int], int]:
    counted: dict[tuple[str, int], int] = {}
    for n in range(40):
        where = (f"u{n % 3}", n * 4000 // MINUTE)
        counted[where] = counted.get(where, 0) + 1
    return counted


def send(log: headwater.Log, events: list[tuple[int, int]]) -> None:
    with log.producer("events", id="till") as producer:
        producer.send_batch([{"user": f"u{user}", "amount": 1.5, "at": at} for user, at in events])


def test_what_a_source_cannot_compute_is_refused_with_the_line(tmp_path: Path) -> None:
    web = Pipeline("web", log=f"file:{tmp_path}")
    with pytest.raises(PipelineError, match=r"timestamp_millis\(at\)") as refused:
        web.source("events", SCHEMA, event_time="at")
    assert Path(__file__).name in str(refused.value)
