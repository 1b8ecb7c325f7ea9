"""What is read ahead of a planner, on a real broker: who appended what, and when; and files for others."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

import headwater
from headwater import Log
from headwater.errors import TopicReplaced
from headwater.log import prefetched
from headwater.log.kafka import read_ahead
from headwater.log.prefetched import Span
from kafka_kit import produce_at_once

pytestmark = pytest.mark.kafka
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
MICROS = int(NOON.timestamp()) * 1_000_000


@pytest.fixture
def topic(kafka: Log, name: str) -> str:
    kafka.create_topic(name, "n BIGINT, at TIMESTAMP", event_time="at", partitions=2)
    return name


@pytest.fixture
def reading(kafka_broker: str, tmp_path: Path) -> Iterator[Log]:
    with headwater.open(f"kafka://{kafka_broker}") as log:
        log.prefetch_into(tmp_path)
        yield log


def send_foreign(broker: str, topic: str, values: list[bytes]) -> None:
    """Send as another program does: without headers."""
    produce_at_once(broker, topic, [{"value": value, "partition": 0} for value in values])


def json(n: int) -> bytes:
    return b'{"n": %d, "at": "2026-01-01T12:00:%02dZ"}' % (n, n % 60)


def prefetched_rows(log: Log, root: Path, topic: str, start: int, end: int) -> list[int] | None:
    batches = prefetched.read(root, Span(topic, log.topic(topic).id, 0, start, end))
    return None if batches is None else [n for each in batches for n in each.column("n").to_pylist()]


def test_each_producer_is_told_with_its_newest_time(reading: Log, kafka: Log, topic: str) -> None:
    with kafka.producer(topic, id="a") as a, kafka.producer(topic, id="b") as b:
        a.send_batch([{"n": n, "at": MICROS + n} for n in range(10)])
        b.send_batch([{"n": n, "at": MICROS + 100 + n} for n in range(10)])
    told = [each for p in (0, 1) for each in reading.appended_ranges(topic, p, 0) if each.newest is not None]
    newest = {id: max(each.newest or 0 for each in told if each.producer == id) for id in ("a", "b")}
    assert newest == {"a": MICROS + 9, "b": MICROS + 109}


def test_records_without_a_producer_are_read_once_and_found_in_files(
    reading: Log, kafka_broker: str, topic: str, tmp_path: Path
) -> None:
    send_foreign(kafka_broker, topic, [json(n) for n in range(50)])
    told = list(reading.appended_ranges(topic, 0, 0))
    assert {each.producer for each in told} == {""}
    assert max(each.newest or 0 for each in told) == MICROS + 49_000_000
    assert [each.base for each in told] + [50] == [0, *(each.end for each in told)]
    assert prefetched_rows(reading, tmp_path, topic, 0, 50) == list(range(50))
    assert prefetched_rows(reading, tmp_path, topic, 7, 9) == [7, 8]


def test_a_record_that_does_not_fit_is_in_no_file_and_the_others_are(
    reading: Log, kafka_broker: str, topic: str, tmp_path: Path
) -> None:
    send_foreign(kafka_broker, topic, [json(0), b"{", json(2), b"[]", json(4)])
    assert list(reading.appended_ranges(topic, 0, 0))[-1].newest == MICROS + 4_000_000
    assert prefetched_rows(reading, tmp_path, topic, 0, 5) is None
    assert [prefetched_rows(reading, tmp_path, topic, n, n + 1) for n in range(5)] == [
        [0],
        None,
        [2],
        None,
        [4],
    ]


def test_a_mark_lies_exactly_behind_its_offset(reading: Log, kafka: Log, name: str) -> None:
    topic = kafka.create_topic(name, "n BIGINT, at TIMESTAMP", event_time="at").name
    with kafka.producer(topic, id="till") as producer:
        producer.send_batch([{"n": n, "at": MICROS} for n in range(4)])
        producer.mark(NOON)
        producer.send_batch([{"n": n, "at": MICROS} for n in range(4)])
    told = list(reading.appended_ranges(topic, 0, 0))
    (mark,) = [each for each in told if each.mark]
    edges = {edge for each in told if not each.mark for edge in (each.base, each.end)}
    assert (mark.newest, mark.producer) == (MICROS, "till")
    assert mark.base in edges
    assert mark in list(reading.appended_ranges(topic, 0, mark.base))  # also to one who has come just so far
    with headwater.open(kafka.url) as other:
        assert mark in list(other.appended_ranges(topic, 0, mark.base))
        assert mark not in list(other.appended_ranges(topic, 0, mark.base + 1))


def test_what_comes_later_is_waited_for_and_what_is_planned_is_forgotten(
    reading: Log, kafka_broker: str, topic: str, tmp_path: Path
) -> None:
    for first in range(0, 30, 10):
        send_foreign(kafka_broker, topic, [json(n) for n in range(first, first + 10)])
        told = list(reading.appended_ranges(topic, 0, first))
        assert (told[0].base, told[-1].end) == (first, first + 10)
    assert prefetched_rows(reading, tmp_path, topic, 0, 10) is None
    assert prefetched_rows(reading, tmp_path, topic, 20, 30) == list(range(20, 30))
    assert next(reading.appended_ranges(topic, 0, 5)).base == 5  # one who goes back is served anew


def test_it_stops_ahead_of_who_plans_and_goes_on_with_them(
    reading: Log, kafka_broker: str, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(read_ahead, "AHEAD", 100)
    monkeypatch.setattr(read_ahead.scan, "MESSAGES", 10)
    send_foreign(kafka_broker, topic, [json(n) for n in range(2_000)])
    for start in range(0, 2_000, 250):
        told = next(reading.appended_ranges(topic, 0, start))
        assert told.base == start
    assert list(reading.appended_ranges(topic, 0, 1_990))[-1].end == 2_000


def test_a_topic_that_was_made_again_is_not_read_in_its_place(
    reading: Log, kafka: Log, kafka_broker: str, topic: str
) -> None:
    send_foreign(kafka_broker, topic, [json(n) for n in range(5)])
    position = reading.resolve(topic, "earliest")
    assert list(reading.appended_ranges(topic, 0, position))
    kafka.delete_topic(topic)
    kafka.create_topic(topic, "n BIGINT, at TIMESTAMP", event_time="at", partitions=2)
    send_foreign(kafka_broker, topic, [json(n) for n in range(5)])
    time.sleep(1.1)
    with pytest.raises(TopicReplaced):
        list(reading.appended_ranges(topic, 0, position))
