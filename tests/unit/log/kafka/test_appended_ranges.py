"""What an appended range of a Kafka partition tells of time, from the few records at its end. No broker."""

from __future__ import annotations

from dataclasses import replace

from confluent_kafka import Message

from headwater import topic as topics
from headwater.log.appended_range import AppendedRange
from headwater.log.kafka import appended_ranges
from headwater.log.kafka.catalog import Known
from headwater.log.kafka.messages import MARK, PRODUCER

TOPIC = replace(topics.create("orders", "id BIGINT, at TIMESTAMP", event_time="at"), id="t1")
NOON = 1_767_268_800_000_000


def record(offset: int, second: int, received: int) -> Message:
    value = b'{"id": 1, "at": "2026-01-01T12:00:%02dZ"}' % second
    return Message(topic="orders", partition=0, offset=offset, value=value, timestamp=(1, received))


def mark(offset: int) -> Message:
    headers = [(PRODUCER, b"till"), (MARK, b"77")]
    return Message(topic="orders", partition=0, offset=offset, headers=headers, timestamp=(1, 8))


def test_an_appended_range_has_the_newest_event_time_and_the_last_time_of_receipt() -> None:
    found = [record(4, 9, 6), record(5, 3, 7)]
    made = appended_ranges._appended_range(Known(TOPIC, True), found, (0, 2, 6), began=5000)
    assert made == AppendedRange(0, 2, 6, "", 7000, NOON + 9_000_000, first=5000)


def test_an_end_of_nothing_but_markers_has_no_time() -> None:
    made = appended_ranges._appended_range(Known(TOPIC, True), [], (0, 2, 6), began=5000)
    assert (made.newest, made.received, made.base, made.end) == (None, 0, 2, 6)


def test_a_topic_without_event_time_tells_none() -> None:
    untimed = topics.create("orders", "id BIGINT, at TIMESTAMP")
    made = appended_ranges._appended_range(Known(untimed, True), [record(4, 9, 6)], (0, 4, 5), began=6000)
    assert made.newest is None


def test_a_mark_lies_behind_its_offset_and_covers_none() -> None:
    [found] = appended_ranges._marks([record(4, 9, 6), mark(5)], 0)
    assert found == AppendedRange(0, 6, 6, "till", 8000, 77, True)
    assert appended_ranges._first([record(4, 9, 6), mark(5)]) == 6000
