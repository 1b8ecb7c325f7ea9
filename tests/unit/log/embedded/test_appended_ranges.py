"""Appended ranges of a partition: what headers alone tell is what the records would."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from headwater.durations import micros
from headwater.log.appended_range import AppendedRange
from headwater.log.embedded import EmbeddedLog

EARLY = datetime(2020, 1, 1, tzinfo=UTC)
COUNT = 18


@pytest.fixture
def log(tmp_path: Path) -> Iterator[EmbeddedLog]:
    with EmbeddedLog(tmp_path / "log", durability="os", segment_bytes=600) as log:
        yield log


def fill(log: EmbeddedLog, **how: Any) -> None:
    log.create_topic("t", "k INT, at TIMESTAMP", key="k", event_time="at", **how)
    with log.producer("t", id="a") as first, log.producer("t", id="b") as second:
        for n in range(0, COUNT, 3):
            producer = first if n % 2 else second
            rows = [{"k": each % 2, "at": EARLY - timedelta(days=each)} for each in range(n, n + 3)]
            producer.send_batch(rows)
            producer.flush()


def found(log: EmbeddedLog, start: int) -> list[AppendedRange]:
    every = list(log.appended_ranges("t", 0, start))
    spans = [each for each in every if not each.mark and each.end > each.base]
    covered = [offset for each in spans for offset in range(each.base, each.end)]
    assert covered[covered.index(start) :] == list(range(start, COUNT))
    return every


def agree(log: EmbeddedLog, spans: list[AppendedRange]) -> None:
    """Compare each appended range with its records."""
    rows = {row["_offset"]: row for batch in log.read("t", meta=True) for row in batch.to_pylist()}
    for each in spans:
        mine = [rows[offset] for offset in range(each.base, each.end)]
        assert {row["_producer"] for row in mine} == {each.producer}
        assert micros(mine[-1]["_received"]) == each.received
        assert each.newest is not None
        assert each.newest >= max(micros(row["_occurred"]) for row in mine)


@pytest.mark.parametrize("start", [0, 1, 7, COUNT - 1])
def test_appended_ranges_of_segments_agree_with_their_records(log: EmbeddedLog, start: int) -> None:
    fill(log)
    agree(log, found(log, start))


@pytest.mark.parametrize("start", [0, 1, 7, COUNT - 1])
def test_what_is_archived_is_covered_too_a_file_at_a_time(
    log: EmbeddedLog, tmp_path: Path, start: int
) -> None:
    fill(log)
    log.alter_topic("t", retention_bytes=700, archive=str(tmp_path / "archive"))
    log.compact("t")
    assert any((tmp_path / "archive").rglob("*.parquet"))
    every = found(log, start)
    assert {each.producer for each in found(log, 0)} == {"a", "b"}
    assert all(each.began <= each.received for each in every)


@pytest.mark.parametrize("start", [0, 7, COUNT - 1])
def test_the_gaps_of_compaction_are_covered(log: EmbeddedLog, start: int) -> None:
    fill(log, cleanup="compact")
    log.compact("t")
    assert sum(len(batch) for batch in log.read("t")) == 2
    found(log, start)


def test_a_partition_of_which_nothing_is_left_is_covered_up_to_its_end(log: EmbeddedLog) -> None:
    log.create_topic("t", "k INT", key="k", cleanup="compact", retention="1 microsecond")
    with log.producer("t") as producer:
        producer.send({"k": 1})
        producer.delete(1)
    log.compact("t")
    assert sum(len(batch) for batch in log.read("t")) == 0
    assert [(each.base, each.end, each.producer) for each in log.appended_ranges("t", 0, 0)] == [(0, 2, "")]


def test_at_the_end_there_is_nothing_but_a_mark(log: EmbeddedLog) -> None:
    fill(log)
    assert list(log.appended_ranges("t", 0, COUNT)) == []
    with log.producer("t", id="a") as producer:
        producer.mark(EARLY)
    [mark] = log.appended_ranges("t", 0, COUNT)
    assert (mark.mark, mark.base, mark.end, mark.newest) == (True, COUNT, COUNT, micros(EARLY))
