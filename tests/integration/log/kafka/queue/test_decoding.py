"""Messages of Kafka as rows: marks are none, and what does not fit is told."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from confluent_kafka import Producer

from headwater.errors import UnreadableRecord
from headwater.log import Log

pytestmark = pytest.mark.kafka


def test_a_mark_is_no_message(kafka: Log, name: str) -> None:
    kafka.create_topic(name, "n BIGINT, at TIMESTAMP", event_time="at")
    with kafka.producer(name) as producer:
        producer.mark(datetime(2026, 1, 1, tzinfo=UTC))
        producer.send({"n": 1, "at": datetime(2026, 1, 2, tzinfo=UTC)})
    with kafka.queue(name, "g") as queue:
        [message] = queue.receive(10, timeout=20)
        assert message.value["n"] == 1
        message.ack()


def test_a_record_that_does_not_fit_is_told(kafka: Log, kafka_broker: str, name: str) -> None:
    kafka.create_topic(name, "n BIGINT")
    client = Producer({"bootstrap.servers": kafka_broker})
    client.produce(name, b"no json")
    client.flush()
    with kafka.queue(name, "g") as queue, pytest.raises(UnreadableRecord):
        for _ in range(20):
            queue.receive(timeout=1)
