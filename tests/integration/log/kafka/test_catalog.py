"""Topics on Kafka: settings of the broker, compaction, retention, damage."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from headwater.errors import DamagedLog, TopicError, UsageError
from headwater.log import Log
from kafka_broker import Broker
from kafka_kit import admin, rows, until

pytestmark = pytest.mark.kafka


def settings(servers: str, topic: str) -> dict[str, str]:
    resource = ConfigResource(ResourceType.TOPIC, topic)
    [told] = admin(servers).describe_configs([resource]).values()
    return {name: entry.value for name, entry in told.result(30).items()}


def configure(servers: str, topic: str, **values: Any) -> None:
    entries = [
        ConfigEntry(name.replace("_", "."), str(value), incremental_operation=AlterConfigOpType.SET)
        for name, value in values.items()
    ]
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
    [told] = admin(servers).incremental_alter_configs([resource]).values()
    told.result(30)


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


def test_what_the_broker_cannot_do_is_refused(kafka: Log, name: str) -> None:
    with pytest.raises(UsageError, match="archive"):
        kafka.create_topic(name, "id BIGINT", archive="old")
    with pytest.raises(TopicError, match="invalid topic name"):
        kafka.create_topic("__mine", "id BIGINT")
    kafka.create_topic(name, "id BIGINT")
    with pytest.raises(UsageError, match="by hand"):
        kafka.compact(name)


def test_compaction_leaves_holes_that_readers_pass(kafka: Log, kafka_broker: str, name: str) -> None:
    kafka.create_topic(name, "id BIGINT, n BIGINT", key="id", cleanup="compact")
    configure(kafka_broker, name, segment_ms=1000, min_cleanable_dirty_ratio=0.01, delete_retention_ms=100)
    with kafka.producer(name) as producer:
        for n in range(30):
            producer.send_batch([{"id": i, "n": n} for i in range(10)])
        producer.delete(3)
        producer.flush()

    def compacted() -> bool:
        with kafka.producer(name) as producer:  # a segment is closed by the next record
            producer.send({"id": 99, "n": 0})
        return len(rows(kafka, name)) < 30

    assert until(compacted, 60)
    found = {row["id"]: row["n"] for row in rows(kafka, name) if not row["_deleted"]}
    assert {i: found[i] for i in range(10) if i != 3} == {i: 29 for i in range(10) if i != 3}
    assert kafka.verify(name).ok
    end = kafka.resolve(name, "latest").offsets[0]
    with kafka.consumer(name, f"g-{name}") as consumer:
        while consumer.poll(3) is not None:
            pass
        assert consumer.position().offsets == {0: end}


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
