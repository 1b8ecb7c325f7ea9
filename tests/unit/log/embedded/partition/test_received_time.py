"""Clocks that are wrong: what they may stamp, and that they remove nothing."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater import durations
from headwater.errors import ClockWrong
from headwater.log.embedded import EmbeddedLog
from headwater.log.embedded.partition import received_time
from headwater.log.embedded.partition.received_time import AHEAD, SKEW, Clocks

DAY = 86_400_000_000
YEARS = 73 * 366 * DAY


@pytest.fixture
def log(tmp_path: Path) -> Iterator[EmbeddedLog]:
    with EmbeddedLog(tmp_path / "log", segment_bytes=2000) as log:
        log.create_topic("t", "n BIGINT")
        yield log


def fill(log: EmbeddedLog, count: int, topic: str = "t") -> None:
    with log.producer(topic) as producer:
        for n in range(count):
            producer.send({"n": n})
            producer.flush()


def received(log: EmbeddedLog) -> list[int]:
    return [
        durations.micros(row["_received"]) for batch in log.read("t", meta=True) for row in batch.to_pylist()
    ]


def set_ahead(monkeypatch: pytest.MonkeyPatch, by: int, files: bool = False) -> None:
    """Let this process's clock be ahead, or that of its whole machine, from which files get their times."""
    monkeypatch.setattr(durations, "now", lambda: time.time_ns() // 1000 + by)
    if files:
        monkeypatch.setattr(received_time, "files_clock", lambda _: time.time_ns() // 1000 + by)


@pytest.mark.parametrize("machine", [False, True])
def test_a_process_in_the_year_2099_appends_nothing_and_removes_nothing(
    log: EmbeddedLog, monkeypatch: pytest.MonkeyPatch, machine: bool
) -> None:
    log.alter_topic("t", retention="1 day")
    fill(log, 100)
    log.create_topic("keyed", "n BIGINT", key="n", cleanup="compact")
    with log.producer("keyed") as producer:
        producer.send_batch([{"n": 1}])
        producer.delete(1)
    with monkeypatch.context() as patch:
        set_ahead(patch, YEARS, files=machine)
        producer = log.producer("t")
        with pytest.raises(ClockWrong, match='clocks disagree about topic "t"'):
            producer.send_batch([{"n": -1}])
            producer.flush()
        for topic in ("t", "keyed"):
            with pytest.raises(ClockWrong, match=f'clocks disagree about topic "{topic}"'):
                log.compact(topic)
        # Before the clock is right again: what the producer has kept, it tries to append by itself.
        assert log.describe("t").records == 100
        assert [row["_deleted"] for batch in log.read("keyed") for row in batch.to_pylist()] == [False, True]
    producer.close()  # what it has kept is appended with the right time
    assert len(received(log)) == 101
    assert max(received(log)) < durations.now() + SKEW


def test_times_recover_from_a_clock_that_was_ahead(
    log: EmbeddedLog, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    fill(log, 3)
    with monkeypatch.context() as patch:
        set_ahead(patch, 100 * DAY, files=True)
        fill(log, 3)
    with caplog.at_level(logging.WARNING, "headwater"):
        fill(log, 3)
    assert [at > durations.now() + SKEW for at in received(log)] == [False] * 3 + [True] * 3 + [False] * 3
    assert [record.message for record in caplog.records if "ahead" in record.message] != []
    assert log.resolve("t", durations.instant(durations.now() + 5_000_000)).offsets == {0: 9}
    assert log.describe("t").partitions[0].newest < durations.instant(durations.now() + SKEW)
    assert log.verify().ok


def test_retention_goes_on_behind_what_a_clock_that_was_ahead_has_stamped(
    log: EmbeddedLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        set_ahead(patch, 100 * DAY, files=True)
        fill(log, 30)
    fill(log, 30)
    log.alter_topic("t", retention="1 day")
    log.compact("t")
    assert log.describe("t").records == 60
    with monkeypatch.context() as patch:
        set_ahead(patch, 3 * DAY, files=True)
        fill(log, 30)
        log.compact("t")
    assert 30 <= log.describe("t").records < 60


def test_a_clock_that_is_behind_its_log_stamps_what_the_log_says(
    log: EmbeddedLog, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    fill(log, 3)
    with monkeypatch.context() as patch, caplog.at_level(logging.WARNING, "headwater"):
        set_ahead(patch, -30 * DAY, files=True)
        fill(log, 3)
        log.alter_topic("t", retention="1 day")
        log.compact("t")
    assert received(log) == sorted(received(log))
    assert min(received(log)) > durations.now() - DAY
    assert [record.message for record in caplog.records if "behind" in record.message] != []


def test_a_log_left_alone_for_years_is_used_again_when_somebody_says_so(log: EmbeddedLog) -> None:
    head = log.root / "topics" / "t" / "0" / "head"
    os.utime(head, (0, 0))
    with log.producer("t") as producer:
        producer.send_batch([{"n": 1}])
        with pytest.raises(ClockWrong) as told:
            producer.flush()
        assert f'touch "{head}"' in str(told.value.hint)
        head.touch()
    assert len(received(log)) == 1


TIMES = st.integers(50 * 366 * DAY, 130 * 366 * DAY)


@given(st.builds(Clocks, TIMES, TIMES, TIMES, TIMES))
def test_a_time_of_receipt_is_one_that_two_witnesses_support(clocks: Clocks) -> None:
    try:
        at = clocks.received_time(Path("topics/t/0"))
    except ClockWrong:
        latest = max(clocks.published, clocks.received)
        assert abs(clocks.now - clocks.files) > SKEW or clocks.now - latest > AHEAD
        return
    others: list[Any] = [clocks.files] if at == clocks.now else [clocks.published, clocks.now]
    assert (
        any(abs(at - each) <= SKEW or at <= each for each in others) or clocks.published > clocks.now + SKEW
    )
    assert at >= min(clocks.received, clocks.now)


def test_a_record_within_the_retention_keeps_its_segment_and_an_idle_topic_empties(tmp_path: Path) -> None:
    with EmbeddedLog(tmp_path / "log") as log:
        log.create_topic("t", "n BIGINT", retention="1 second")
        fill(log, 3)
        log.compact("t")
        assert log.describe("t").records == 3
        time.sleep(1.1)
        log.compact("t")  # the active segment is closed first: none of its records is young enough
        assert log.describe("t").records == 0
        fill(log, 2)
        assert log.resolve("t", "latest").offsets == {0: 5}
        assert log.verify().ok
