"""What lies between offsets, and marks: told without reading, seen by no reader of records."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import pairwise

import pytest

from contract_kit import Backend, rows_of
from headwater import Log
from headwater.errors import Fenced, UsageError

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
MICROS = int(NOON.timestamp()) * 1_000_000


@pytest.fixture
def topic(log: Log, name: str) -> str:
    log.create_topic(name, "n BIGINT, at TIMESTAMP", event_time="at", partitions=2)
    return name


def test_appended_ranges_cover_every_offset_once_and_know_the_newest_time(log: Log, topic: str) -> None:
    with log.producer(topic) as producer:
        for first in (0, 10):
            producer.send_batch([{"n": n, "at": MICROS + n} for n in range(first, first + 10)])
            producer.flush()
    ends = log.resolve(topic, "latest").offsets
    for partition in (0, 1):
        found = [each for each in log.appended_ranges(topic, partition, 0) if not each.mark]
        edges = [0, *(each.end for each in found)]
        assert [(each.base, each.end) for each in found] == list(pairwise(edges))
        assert edges[-1] == ends[partition]
    newest = [each.newest for p in (0, 1) for each in log.appended_ranges(topic, p, 0) if each.newest]
    assert max(newest) == MICROS + 19


def test_appended_ranges_begin_at_the_offset_asked_for(log: Log, topic: str) -> None:
    with log.producer(topic) as producer:
        producer.send_batch([{"n": n, "at": MICROS + n} for n in range(20)])
    end = log.resolve(topic, "latest").offsets[0]
    assert [(each.base, each.end) for each in log.appended_ranges(topic, 0, 3)] == [(3, end)]
    assert list(log.appended_ranges(topic, 0, end)) == []


def test_a_mark_is_told_and_is_no_record(log: Log, topic: str) -> None:
    with log.producer(topic) as producer:
        producer.send({"n": 1, "at": MICROS})
        producer.mark(NOON)
        producer.send({"n": 2, "at": MICROS + 1})
    assert sorted(row["n"] for row in rows_of(log, topic)) == [1, 2]
    for partition in (0, 1):
        marks = [each for each in log.appended_ranges(topic, partition, 0) if each.mark]
        assert [(each.newest, each.producer) for each in marks] == [(MICROS, producer.id)]
    assert log.verify(topic).ok


def test_a_mark_after_the_last_record_is_told_to_who_has_read_all(log: Log, topic: str) -> None:
    with log.producer(topic) as producer:
        producer.send({"n": 1, "at": MICROS})
        position = producer.flush()
        producer.mark(NOON)
    partition, offset = next(iter(position.offsets.items()))
    assert [each.newest for each in log.appended_ranges(topic, partition, offset) if each.mark] == [MICROS]


def test_a_group_reads_over_marks(log: Log, topic: str, name: str) -> None:
    with log.producer(topic) as producer:
        producer.mark(NOON)
        producer.send({"n": 1, "at": MICROS})
        producer.mark(NOON)
    with log.consumer(topic, f"group-{name}") as consumer:
        batch = consumer.poll(10)
        assert batch is not None
        assert batch.column("n").to_pylist() == [1]
        assert consumer.poll(0.1) is None


def test_a_producer_that_was_replaced_cannot_mark(backend: Backend, topic: str) -> None:
    old = backend.log.producer(topic, id="clock")
    with backend.again().producer(topic, id="clock") as new:
        new.mark(NOON)
        with pytest.raises(Fenced):
            old.mark(NOON)


def test_a_topic_without_event_time_takes_no_marks(log: Log, name: str) -> None:
    log.create_topic(name, "n BIGINT")
    with log.producer(name) as producer, pytest.raises(UsageError, match="takes no marks"):
        producer.mark(NOON)
