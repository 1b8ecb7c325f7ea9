"""What the Kafka tests share: plain clients, as any other tool would use them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from headwater.log import Log
from headwater.log.consumer import Consumer as LogConsumer


@cache
def admin(servers: str) -> AdminClient:
    """A client must outlive what it was asked for, so there is one per broker."""
    return AdminClient({"bootstrap.servers": servers, "log_level": 0})


def make_topic(servers: str, name: str, partitions: int = 1, replicas: int = 1) -> None:
    admin(servers).create_topics([NewTopic(name, partitions, replicas)])[name].result(30)
    until(lambda: name in admin(servers).list_topics(timeout=10).topics)


def settings(servers: str, name: str) -> dict[str, str]:
    """Return the broker's settings of a topic."""
    resource = ConfigResource(ResourceType.TOPIC, name)
    entries = admin(servers).describe_configs([resource])[resource].result(30)
    return {key: entry.value for key, entry in entries.items()}


def produce(
    servers: str, topic: str, records: Iterable[dict[str, Any]], **config: Any
) -> list[tuple[int, int]]:
    """Produce as another tool would, and return where each record went."""
    places: list[tuple[int, int]] = []
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 0, **config})
    for record in records:
        producer.produce(
            topic, **record, on_delivery=lambda error, m: places.append((m.partition(), m.offset())) or error
        )
        producer.flush(30)
    return places


def produce_at_once(servers: str, topic: str, records: Iterable[dict[str, Any]]) -> None:
    """Produce many records, as fast as it goes."""
    producer = Producer({"bootstrap.servers": servers})
    for record in records:
        producer.produce(topic, **record)
    assert producer.flush(30) == 0


def begin_transaction(servers: str, topic: str, records: Iterable[dict[str, Any]]) -> Producer:
    """Send records in a transaction, as another tool would, and return its producer, which may end it."""
    producer = Producer({"bootstrap.servers": servers, "transactional.id": f"foreign-{topic}"})
    producer.init_transactions(30)
    producer.begin_transaction()
    for record in records:
        producer.produce(topic, **record)
    assert producer.flush(30) == 0
    return producer


def delete_records(servers: str, topic: str, before: int, partition: int = 0) -> None:
    """Let a partition begin at an offset, as retention does."""
    [gone] = admin(servers).delete_records([TopicPartition(topic, partition, before)]).values()
    gone.result(30)


def consume(servers: str, topic: str, count: int) -> list[Any]:
    """Consume as another tool would."""
    consumer = Consumer(
        {"bootstrap.servers": servers, "group.id": f"plain-{topic}", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([topic])
    found: list[Any] = []
    deadline = time.monotonic() + 120
    while len(found) < count and time.monotonic() < deadline:
        message = consumer.poll(1)
        if message is not None and message.error() is None:
            found.append(message)
    consumer.close()
    return found


def polled(consumer: LogConsumer, count: int, seconds: float = 30) -> list[dict[str, Any]]:
    """Return what a member of a group is given, up to so many rows."""
    found: list[dict[str, Any]] = []
    deadline = time.monotonic() + seconds
    while len(found) < count and time.monotonic() < deadline:
        batch = consumer.poll(1)
        found += [] if batch is None else batch.to_pylist()
    return found


def rows(log: Log, topic: str, **how: Any) -> list[dict[str, Any]]:
    return [row for batch in log.read(topic, **how) for row in batch.to_pylist()]


def until(holds: Callable[[], bool], seconds: float = 30) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if holds():
            return True
        time.sleep(0.1)
    return False


def configure(servers: str, topic: str, **values: Any) -> None:
    """Change a topic's settings, as an administrator would."""
    entries = [
        ConfigEntry(name.replace("_", "."), str(value), incremental_operation=AlterConfigOpType.SET)
        for name, value in values.items()
    ]
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
    [told] = admin(servers).incremental_alter_configs([resource]).values()
    told.result(30)


def filled(kafka: Log, name: str, count: int = 10, partitions: int = 1) -> None:
    """Make a topic of a log that has the numbers up to a count."""
    kafka.create_topic(name, "n BIGINT", partitions=partitions)
    with kafka.producer(name) as producer:
        producer.send_batch([{"n": n} for n in range(count)])
