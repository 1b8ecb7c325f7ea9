"""What is wrong with records of a Kafka topic is told by its place, and all of it. No broker."""

from __future__ import annotations

from typing import Any, cast

from confluent_kafka import Message

from headwater import topic as topics
from headwater.log.kafka import maintenance
from headwater.log.kafka.catalog import KafkaTopic
from headwater.log.kafka.cluster import TimedOffset
from headwater.log.kafka.outgoing import PRODUCER, SEQUENCE

ORDERS = KafkaTopic(topics.create("orders", "id BIGINT"), True, False, cast(Any, None))


def record(offset: int, value: bytes = b'{"id": 1}', **headers: bytes) -> Message:
    named = [({"producer": PRODUCER, "sequence": SEQUENCE}[name], each) for name, each in headers.items()]
    return Message(topic="orders", partition=0, offset=offset, value=value, headers=named, timestamp=(1, 1))


def numbered(offset: int, producer: bytes, sequence: bytes) -> Message:
    return record(offset, producer=producer, sequence=sequence)


def test_a_sequence_that_does_not_grow_is_found_across_batches() -> None:
    last: dict[bytes, int] = {}
    first = [numbered(0, b"a", b"0"), numbered(1, b"b", b"0"), numbered(2, b"a", b"1")]
    assert list(maintenance._sequences(first, last)) == []
    [problem] = maintenance._sequences([numbered(3, b"a", b"1"), numbered(4, b"a", b"2")], last)
    assert problem == 'producer "a": sequence 1 after 1, at offset 3'


def test_records_of_other_tools_have_no_sequence_to_check() -> None:
    assert list(maintenance._sequences([record(0), record(1)], {})) == []


def test_every_value_that_does_not_fit_is_told_and_those_between_are_read() -> None:
    values = [b'{"id": 1}', b"no", b'{"id": 2}', b'{"id": "x"}']
    found = [record(offset, value) for offset, value in enumerate(values)]
    problems = list(maintenance._values(found, ORDERS))
    assert ["offset 1" in problems[0], "offset 3" in problems[1], len(problems)] == [True, True, 2]


def test_a_time_that_the_broker_does_not_know_is_none() -> None:
    assert maintenance._instant(TimedOffset(-1, -1)) is None
    assert maintenance._instant(TimedOffset(3, 1000)).isoformat() == "1970-01-01T00:00:01+00:00"
