"""Topics on Kafka: settings of the broker, compaction, retention, damage."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka.admin import ConfigResource, ResourceType

from headwater.errors import DamagedLog
from headwater.log import Log
from kafka_broker import Broker
from kafka_kit import admin, rows, until

pytestmark = pytest.mark.kafka


def settings(servers: str, topic: str) -> dict[str, str]:
    resource = ConfigResource(ResourceType.TOPIC, topic)
    [told] = admin(servers).describe_configs([resource]).values()
    return {name: entry.value for name, entry in told.result(30).items()}


def test_a_declaration_becomes_the_brokers_settings(kafka: Log, kafka_broker: str, name: str) -> None:
    kafka.create_topic(name, "id BIGINT", retention="7 days", retention_bytes=80_000_000)
    told = settings(kafka_broker, name)
    assert told["retention.ms"] == str(7 * 86_400_000)
    assert told["retention.bytes"] == "80000000"
    assert told["segment.bytes"] == "10000000"
    assert told["cleanup.policy"] == "delete"
    assert told["message.timestamp.type"] == "LogAppendTime"
    kafka.alter_topic(name, retention="1 hour", retention_bytes=None)
    told = settings(kafka_broker, name)
    assert (told["retention.ms"], told["retention.bytes"]) == ("3600000", "-1")


def test_a_compacted_topic_keeps_its_tombstones_for_the_retention(
    kafka: Log, kafka_broker: str, name: str
) -> None:
    kafka.create_topic(name, "id BIGINT", key="id", cleanup="compact", retention="2 hours")
    told = settings(kafka_broker, name)
    assert told["cleanup.policy"] == "compact"
    assert told["delete.retention.ms"] == "7200000"
    assert told["retention.ms"] == "-1"


def test_retention_by_time_deletes(kafka: Log, name: str) -> None:
    kafka.create_topic(name, "id BIGINT", retention="1 second")
    with kafka.producer(name) as producer:
        producer.send_batch([{"id": i} for i in range(10)])
    assert until(lambda: kafka.resolve(name, "earliest").offsets[0] == 10, 60)
    assert rows(kafka, name) == []


def test_damaged_bytes_are_found_and_never_returned(kafka: Log, broker: Broker, name: str) -> None:
    kafka.create_topic(name, "text STRING")
    with kafka.producer(name) as producer:
        for n in range(3):
            producer.send_batch([{"text": f"{n}" * 400}])
    [segment] = Path(broker.directory / "data" / f"{name}-0").glob("*.log")
    data = bytearray(segment.read_bytes())
    data[len(data) // 2] ^= 0xFF
    with open(segment, "r+b") as file:
        file.write(data)
    findings = kafka.verify(name).findings
    assert len(findings) == 1
    assert "damaged" in findings[0].problem
    reading = kafka.read(name)
    with pytest.raises(DamagedLog, match="stored bytes are damaged"):
        for batch in reading:
            assert batch.column("text").to_pylist() == ["0" * 400]


def test_declarations_are_seen_by_other_processes(kafka: Log, kafka_broker: str, name: str) -> None:
    from headwater.log.open import open as open_log

    made = kafka.create_topic(name, "id BIGINT", key="id", partitions=2, retention="1 day")
    with open_log(f"kafka://{kafka_broker}") as other:
        assert other.topic(name) == made
        changed = other.alter_topic(name, schema="id BIGINT, more STRING", partitions=3)
    assert kafka.topic(name) == changed
    assert len(changed.schemas) == 2
