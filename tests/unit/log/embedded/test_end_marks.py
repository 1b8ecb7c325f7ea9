"""Marks behind the last record: told together, and walked once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from headwater.log.appended_range import AppendedRange
from headwater.log.embedded import EmbeddedLog
from headwater.log.embedded import end_marks as module
from headwater.log.embedded.partition import segment


@pytest.fixture
def log(tmp_path: Path) -> Iterator[EmbeddedLog]:
    with EmbeddedLog(tmp_path / "log", durability="os") as log:
        log.create_topic("t", "k INT, at TIMESTAMP", key="k", event_time="at", cleanup="compact")
        yield log


def send(log: EmbeddedLog, *keys: int) -> None:
    with log.producer("t", id="a") as producer:
        for key in keys:
            producer.send({"k": key, "at": None})


def at_end(log: EmbeddedLog) -> list[AppendedRange]:
    return list(log.appended_ranges("t", 0, log.resolve("t", "latest").offsets[0]))


def test_the_marks_of_a_producer_are_told_as_one(log: EmbeddedLog) -> None:
    send(log, 1)
    with log.producer("t", id="a") as one, log.producer("t", id="b") as other:
        for time in (10, 30, 20):
            one.mark(time)
        other.mark(7)
        told = {each.producer: each for each in at_end(log)}
        assert {name: (each.newest, each.mark) for name, each in told.items()} == {
            "a": (30, True),
            "b": (7, True),
        }
        assert told["a"].began <= told["a"].received <= told["b"].received
        assert at_end(log) == list(told.values())  # asked again, nothing new has come
        one.mark(40)
        assert [(each.producer, each.newest) for each in at_end(log)] == [("a", 40), ("b", 7)]


def test_marks_before_a_record_are_not_behind_the_last_one(log: EmbeddedLog) -> None:
    with log.producer("t", id="b") as other:
        other.mark(7)
        assert len(at_end(log)) == 1
        send(log, 1)
        assert at_end(log) == []
        other.mark(9)
        assert [each.newest for each in at_end(log)] == [9]


def test_what_was_walked_is_not_walked_again(log: EmbeddedLog, monkeypatch: pytest.MonkeyPatch) -> None:
    walked = list[int]()
    walk = segment.walk

    def counting(*where: int) -> Iterator[tuple[int, object]]:
        for found in walk(*where):
            walked.append(found[0])
            yield found

    monkeypatch.setattr(module.segment, "walk", counting)
    with log.producer("t", id="a") as producer:
        for time in range(50):
            producer.mark(time)
        assert at_end(log)[0].newest == 49
        first = len(walked)
        producer.mark(50)
        assert at_end(log)[0].newest == 50
        assert (first >= 50, len(walked) - first) == (True, 1)


def test_a_topic_that_was_made_again_has_no_marks_of_the_old_one(log: EmbeddedLog) -> None:
    with log.producer("t", id="a") as producer:
        producer.mark(5)
    assert len(at_end(log)) == 1
    log.delete_topic("t")
    log.create_topic("t", "k INT, at TIMESTAMP", key="k", event_time="at")
    assert at_end(log) == []


def test_compaction_leaves_what_is_told_as_it_is(log: EmbeddedLog) -> None:
    send(log, 1, 1, 2)
    with log.producer("t", id="a") as producer:
        producer.mark(5)
        log.compact("t")
        producer.mark(6)
        assert [each.newest for each in at_end(log)] == [6]
