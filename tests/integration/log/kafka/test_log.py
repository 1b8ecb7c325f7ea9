"""Kafka behind the common interface: what it promises holds, or is refused."""

from __future__ import annotations

import time
from datetime import UTC, datetime

import pytest

from headwater.errors import TopicError, UsageError
from headwater.log import Log
from kafka_kit import filled, make_topic, rows

pytestmark = pytest.mark.kafka


def test_reading_from_a_time_starts_at_the_time_of_receipt(kafka: Log, name: str) -> None:
    filled(kafka, name, 3)
    time.sleep(0.05)
    between = datetime.now(UTC)
    time.sleep(0.05)
    with kafka.producer(name) as producer:
        producer.send_batch([{"n": 100}])
    assert [row["n"] for row in rows(kafka, name, start=between)] == [100]
    assert [row["n"] for row in rows(kafka, name, end=between)] == [0, 1, 2]
    assert rows(kafka, name, start=datetime(2100, 1, 1, tzinfo=UTC)) == []


def test_what_the_broker_cannot_do_is_refused(kafka: Log, name: str) -> None:
    with pytest.raises(UsageError, match="archive"):
        kafka.create_topic(name, "id BIGINT", archive="old")
    with pytest.raises(TopicError, match="invalid topic name"):
        kafka.create_topic("__mine", "id BIGINT")
    kafka.create_topic(name, "id BIGINT")
    with pytest.raises(UsageError, match="by hand"):
        kafka.compact(name)


def test_an_adopted_topic_is_appended_to_without_what_is_computed(
    kafka: Log, kafka_broker: str, name: str
) -> None:
    make_topic(kafka_broker, name, 1)
    kafka.adopt_topic(name, "id STRING, at BIGINT", key="id", event_time="timestamp_millis(at)")
    with kafka.producer(name) as producer:
        producer.send({"id": "a", "at": 1_000})
    assert [row["event_time"].year for row in rows(kafka, name)] == [1970]
    kafka.adopt_topic(name, "at BIGINT", key="CAST(_key AS STRING) AS id")
    assert [row["id"] for row in rows(kafka, name)] == ["a"]
    with pytest.raises(UsageError, match="its key is computed"):
        kafka.producer(name)
