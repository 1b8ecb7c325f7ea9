"""Looking after topics: what they hold, and whether it is sound.

Invariant: nothing here changes anything.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from confluent_kafka import Consumer, TopicPartition

from headwater import durations
from headwater.errors import DamagedLog
from headwater.log.kafka import incoming, scan
from headwater.log.kafka.catalog import KafkaTopic
from headwater.log.kafka.cluster import NEWEST, Cluster, TimedOffset, since
from headwater.log.kafka.outgoing import PRODUCER, SEQUENCE
from headwater.log.kafka.registry import READER_GROUP
from headwater.log.report import Finding, PartitionInfo, TopicInfo, Verification

RATE_SECONDS = 60


def describe(cluster: Cluster, known: KafkaTopic) -> TopicInfo:
    """Return what the broker tells of a topic."""
    name, partitions = known.topic.name, range(known.topic.partitions)
    ends = cluster.ends(name, partitions)
    starts = cluster.starts(name, partitions)
    oldest = cluster.offsets(name, partitions, since(0))
    newest = cluster.offsets(name, partitions, NEWEST)
    infos = tuple(
        PartitionInfo(
            partition=number, earliest=starts[number], end=ends[number],
            size=None, segments=None,  # the client does not tell
            oldest=_instant(oldest[number]), newest=_instant(newest[number]),
        )
        for number in partitions
    )  # fmt: skip
    return TopicInfo(known.topic, infos, _rate(cluster, name, ends))


def _instant(told: TimedOffset) -> Any:
    return durations.instant(told.timestamp * 1000) if told.timestamp >= 0 else None


def _rate(cluster: Cluster, name: str, ends: Mapping[int, int]) -> float:
    told = cluster.offsets(name, ends, since(durations.now() // 1000 - RATE_SECONDS * 1000))
    lately = sum(ends[number] - each.offset for number, each in told.items() if each.offset >= 0)
    return max(0, lately) / RATE_SECONDS


def verify(cluster: Cluster, known: KafkaTopic) -> Verification:
    """Read a topic whole: checksums, values that fit, and rising sequences of every producer."""
    name, partitions = known.topic.name, range(known.topic.partitions)
    starts, ends = cluster.starts(name, partitions), cluster.ends(name, partitions)
    parts = (_verify_partition(cluster, known, each, (starts[each], ends[each])) for each in partitions)
    return sum(parts, Verification())


def _verify_partition(
    cluster: Cluster, known: KafkaTopic, number: int, span: tuple[int, int]
) -> Verification:
    start, end = span
    batches = records = size = 0
    findings: list[Finding] = []
    last: dict[bytes, int] = {}
    consumer = Consumer(cluster.config.consumer(READER_GROUP))
    try:
        where = TopicPartition(known.topic.name, number, start)
        for messages in scan.span(consumer, cluster.config, where, end):
            batches, records = batches + 1, records + len(messages)
            size += sum(len(m.value() or b"") + len(m.key() or b"") for m in messages)
            problems = [*_sequences(messages, last), *_values(incoming.records(messages), known)]
            findings += [Finding(known.topic.name, number, problem) for problem in problems]
    except DamagedLog as error:
        findings.append(Finding(known.topic.name, number, f"{error.message}; {error.detail}"))
    finally:
        consumer.close()
    return Verification(batches, records, size, tuple(findings))


def _sequences(messages: list[Any], last: dict[bytes, int]) -> Iterator[str]:
    for message in messages:
        headers = dict(message.headers() or ())
        producer, number = headers.get(PRODUCER), headers.get(SEQUENCE)
        if producer is None or number is None:
            continue  # from a foreign producer
        sequence = int(number) if number.isdigit() else -1
        if sequence <= last.get(producer, -1):
            name, before = producer.decode("utf-8", "replace"), last.get(producer, -1)
            yield f'producer "{name}": sequence {sequence} after {before}, at offset {message.offset()}'
        last[producer] = max(sequence, last.get(producer, -1))


def _values(messages: list[Any], known: KafkaTopic) -> Iterator[str]:
    while messages:
        batch, error = incoming.decode(messages, known, False)
        if error is None:
            return
        yield f"{error.message}; {error.detail}"
        messages = messages[len(batch) + 1 :]
