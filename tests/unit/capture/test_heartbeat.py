"""Marks in topics of captured tables in which nothing changes."""

from __future__ import annotations

import sqlite3
import time
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest

import headwater
from changes_kit import CAPTURED, execute
from headwater.capture import heartbeat, snapshot
from headwater.capture.capture import Capture
from headwater.capture.heartbeat import SAFETY, Heartbeat, TableMarks
from headwater.capture.source import CaptureSource, SourceMoment
from headwater.capture.sqlite.source import SqliteSource
from headwater.capture.writing.captured_table import CapturedTable
from headwater.durations import now
from headwater.log import Log
from headwater.log.appended_range import AppendedRange


class Clock(CaptureSource):
    """A source that tells where it is, and nothing else."""

    title = "a clock"

    def delete_rows(self, table: str, keys: pa.RecordBatch) -> bool:
        raise NotImplementedError

    asked = 0

    def moment(self) -> SourceMoment:
        self.asked += 1
        return SourceMoment(f"{self.asked:04d}", 1_000_000 * self.asked)

    def passed(self, position: str, other: str) -> bool:
        return position >= other

    def _unused(self, *_: object) -> object:
        raise NotImplementedError

    tables = begin = read = confirm = end = chunk = count = retained = drop = _unused  # type: ignore[assignment]

    def close(self) -> None:
        pass


@pytest.fixture
def ticks(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time that the heartbeat has, to be set."""
    at = [1000.0]
    monkeypatch.setattr(heartbeat.time, "monotonic", lambda: at[0])
    return at


def test_a_moment_is_reached_when_the_stream_has_passed_it(ticks: list[float]) -> None:
    source = Clock()
    beats = Heartbeat(source)
    assert beats.beat("0000") is None
    assert (beats.beat("0000"), beats.reached, source.asked) == (None, None, 1)
    assert (beats.beat("0001"), beats.reached) == (1_000_000, 1_000_000)
    assert beats.beat("0009") is None  # it was asked a moment ago
    ticks[0] += 1
    assert (beats.beat("0009"), source.asked) == (2_000_000, 2)


def test_a_mark_stays_behind_by_the_lateness_or_a_moment(ticks: list[float]) -> None:
    marked = list[int]()
    TableMarks(marked.append, 0).reached(9_000_000)
    TableMarks(marked.append, 3_000_000).reached(9_000_000)
    assert marked == [9_000_000 - SAFETY, 6_000_000]


def test_a_mark_that_tells_nothing_new_is_not_written(ticks: list[float]) -> None:
    marked = list[int]()
    marks = TableMarks(marked.append, 0)
    marks.changed(8_000_000)
    marks.reached(9_000_000)
    assert marked == []
    marks.reached(11_000_000)
    ticks[0] += 10
    marks.reached(11_000_000)
    assert marked == [9_000_000]


def test_the_longer_nothing_changes_the_sparser_are_the_marks(ticks: list[float]) -> None:
    marked = list[int]()
    marks = TableMarks(marked.append, 0)
    hours = list[int]()
    for second in range(8 * 3600):
        ticks[0] += 1
        marks.reached(1_000_000 * (second + 10))
        if second % 3600 == 3599:
            hours.append(len(marked))
    assert hours[0] == 3600
    assert len(marked) < 4 * 3600
    assert hours[-1] - hours[-2] < 600
    marks.changed(0)
    marks.reached(marked[-1] + SAFETY + 9_000_000)
    before = len(marked)
    for _ in range(5):
        ticks[0] += 1
        marks.reached(marked[-1] + SAFETY + 9_000_000)
    assert len(marked) == before + 5


def marks_of(log: Log) -> list[AppendedRange]:
    return [each for each in log.appended_ranges("customers", 0, 0) if each.mark]


def capture_of(file: Path, log: Log, captured: CapturedTable = CAPTURED) -> Capture:
    return Capture(SqliteSource(file, "crm"), log, "crm", [captured])


def test_a_table_in_which_nothing_changes_is_marked(file: Path, log: Log) -> None:
    before = now()
    with capture_of(file, log) as capture:
        capture.catch_up()
        [mark] = marks_of(log)
        assert before - SAFETY <= (mark.newest or 0) <= now() - SAFETY
        deadline = time.monotonic() + 120
        while len(marks_of(log)) and marks_of(log)[-1].newest == mark.newest:
            capture.step(0.05)
            assert time.monotonic() < deadline
    assert (marks_of(log)[-1].newest or 0) > (mark.newest or 0)


def test_after_a_snapshot_its_producer_is_marked_too(file: Path, log: Log) -> None:
    execute(file, "INSERT INTO customers VALUES (1, 'a')")
    with capture_of(file, log) as capture:
        capture.catch_up()
    assert {mark.producer for mark in marks_of(log)} == {"capture.crm", "capture.crm.snapshot"}


def test_a_table_whose_snapshot_is_not_complete_is_not_marked(
    file: Path, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshot, "CHUNK_ROWS", 1)
    monkeypatch.setattr(heartbeat, "SECONDS", 0.0)
    execute(file, "INSERT INTO customers VALUES (1, 'a'), (2, 'b'), (3, 'c')")
    with capture_of(file, log) as capture:
        while capture.snapshotting:
            capture.step(0.0)
            assert not marks_of(log) or not capture.snapshotting


def test_a_table_with_an_event_time_of_its_own_is_not_marked(file: Path, log: Log) -> None:
    db = sqlite3.connect(file)
    db.execute("ALTER TABLE customers ADD COLUMN since TEXT")
    db.close()
    columns = headwater.schema.read("id BIGINT, name STRING, since TIMESTAMP")
    with capture_of(file, log, replace(CAPTURED, schema=columns, event_time="since")) as capture:
        capture.catch_up()
    assert marks_of(log) == []


def test_what_is_late_by_less_than_the_tables_lateness_is_not_late(file: Path, log: Log) -> None:
    with capture_of(file, log, replace(CAPTURED, lateness=timedelta(minutes=1))) as capture:
        capture.catch_up()
    [mark] = marks_of(log)
    assert (mark.newest or 0) <= now() - 60_000_000


def test_marks_do_not_disturb_numbers_nor_compaction(file: Path, log: Log) -> None:
    for number in range(3):
        execute(file, ("INSERT INTO customers VALUES (?, 'a')", (number,)))
        with capture_of(file, log) as capture:
            capture.catch_up()
    log.compact("customers")
    assert sum(len(batch) for batch in log.read("customers")) == 3
    assert log.verify("customers").findings == ()
