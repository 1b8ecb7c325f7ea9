"""Some of a topic's newest records, as they are: to find out what they are.

Invariant: few records are fetched, however many there are, and nothing is committed.
"""

from __future__ import annotations

from typing import Any

from confluent_kafka import Consumer, TopicPartition

from headwater.formats.guess import SampledRecord
from headwater.log.kafka import failures, incoming, scan
from headwater.log.kafka.cluster import NEWEST, Cluster
from headwater.log.kafka.registry import READER_GROUP
from headwater.topic import Topic

RECORDS = 100
PARTITIONS = 20
"""How many partitions are looked into at the most: those that have changed last."""


def newest(cluster: Cluster, topic: Topic, count: int = RECORDS) -> list[SampledRecord]:
    """Return the newest records of the partitions that have changed last, oldest first."""
    times = cluster.offsets(topic.name, range(topic.partitions), NEWEST)
    chosen = sorted(times, key=lambda number: -times[number].timestamp)[:PARTITIONS]
    starts, ends = cluster.starts(topic.name, chosen), cluster.ends(topic.name, chosen)
    found: list[Any] = []
    consumer = Consumer(cluster.config.consumer(READER_GROUP))
    try:
        with failures.translating_errors(cluster.config, f'read topic "{topic.name}"'):
            for number in chosen:
                start = TopicPartition(topic.name, number, max(starts[number], ends[number] - count))
                for messages in scan.span(consumer, cluster.config, start, ends[number]):
                    found += incoming.records(messages)
    finally:
        consumer.close()
    found.sort(key=lambda message: message.timestamp()[1])
    return [SampledRecord(message.key(), message.value()) for message in found[-count:]]
