"""What is told of a partition from its ends, compared with what reading all of it tells."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from headwater import durations
from headwater.log.embedded import EmbeddedLog
from headwater.log.embedded.partition_stats import PartitionStats

COUNT = 12


@pytest.fixture(params=["segments", "archive"])
def log(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[EmbeddedLog]:
    with EmbeddedLog(tmp_path / "log", durability="os", segment_bytes=600) as log:
        log.create_topic("t", "n INT")
        with log.producer("t") as producer:
            for n in range(0, COUNT, 2):
                producer.send_batch([{"n": n}, {"n": n + 1}])
                producer.flush()
        if request.param == "archive":
            log.alter_topic("t", retention_bytes=700, archive=str(tmp_path / "archive"))
            log.compact("t")
            assert any((tmp_path / "archive").rglob("*.parquet"))
        yield log


def stats(log: EmbeddedLog) -> PartitionStats:
    return PartitionStats(log._storage, log._storage.catalog.get("t"), 0)


def records(log: EmbeddedLog) -> list[dict[str, Any]]:
    return [row for batch in log.read("t", meta=True) for row in batch.to_pylist()]


def test_ends_and_times_are_those_of_the_records(log: EmbeddedLog) -> None:
    found, rows = stats(log).describe(), records(log)
    assert (found.earliest, found.end) == tuple(stats(log).extent()) == (0, COUNT)
    assert (found.oldest, found.newest) == (rows[0]["_received"], rows[-1]["_received"])
    files = list((log.root / "topics/t/0").glob("*.log"))
    assert (found.segments, found.size) == (len(files), sum(os.stat(each).st_size for each in files))


def test_a_time_stands_for_the_first_record_that_was_received_then_or_later(log: EmbeddedLog) -> None:
    rows = records(log)
    for each in rows:
        for at in (each["_received"], each["_received"] + timedelta(microseconds=1)):
            later = [row["_offset"] for row in rows if row["_received"] >= at]
            assert stats(log).resolve(at) == min(later, default=COUNT)


def test_a_lag_counts_from_what_is_committed_or_can_still_be_read(
    log: EmbeddedLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = records(log)
    monkeypatch.setattr(durations, "now", lambda: durations.micros(rows[-1]["_received"]) + 5_000_000)
    for committed in (0, 3, COUNT - 1):
        lag = stats(log).lag("g", {0: committed})
        assert (lag.committed, lag.end, lag.records) == (committed, COUNT, COUNT - committed)
        assert lag.behind == rows[-1]["_received"] - rows[committed]["_received"] + timedelta(seconds=5)
    assert stats(log).lag("g", {}).records == COUNT
    assert stats(log).lag("g", {0: COUNT}).behind == timedelta()


def test_an_empty_partition_has_no_times(log: EmbeddedLog) -> None:
    log.create_topic("empty", "n INT")
    found = PartitionStats(log._storage, log._storage.catalog.get("empty"), 0)
    assert found.describe() == type(found.describe())(0, 0, 0, 0, 0, None, None)
    assert found.lag("g", {}).behind == timedelta()
    assert found.rate() == 0


def test_a_rate_is_that_of_the_last_minute(log: EmbeddedLog, monkeypatch: pytest.MonkeyPatch) -> None:
    newest = durations.micros(records(log)[-1]["_received"])
    monkeypatch.setattr(durations, "now", lambda: newest + 60_000_001)
    assert stats(log).rate() == 0
    monkeypatch.setattr(durations, "now", lambda: newest + 60_000_000)
    assert stats(log).rate() > 0
