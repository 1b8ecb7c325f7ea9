"""Reading partitions from one offset to another, whatever markers and gaps lie between.

Kafka's offsets are not all records: transactions leave markers, compaction leaves holes, so the
end is told by the reader's place and never by a count.

Invariant: every record in the span is yielded, in order, or an error is raised.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from confluent_kafka import Consumer, KafkaError, TopicPartition

from headwater.errors import LogUnavailable
from headwater.log.kafka import failures
from headwater.log.kafka.config import Config
from headwater.log.kafka.outgoing import PRODUCER, SEQUENCE
from headwater.log.kafka.registry import READER_GROUP

MESSAGES = 10_000
"""Messages taken at once."""
STALLED_SECONDS = 30.0
_PASSING = failures.TRANSIENT | {KafkaError._MAX_POLL_EXCEEDED}


def take(consumer: Consumer, timeout: float, most: int = MESSAGES) -> list[Any]:
    """Return what has arrived, waiting only for the first message."""
    first = consumer.poll(timeout)
    return [] if first is None else [first] if most == 1 else [first, *consumer.consume(most - 1, 0)]


def is_end(message: Any) -> bool:
    """Tell whether this is no record, but the news that the end of the partition was reached."""
    return message.error() is not None and message.error().code() == KafkaError._PARTITION_EOF


def is_transient(message: Any) -> bool:
    """Tell whether this is trouble from which the client recovers by itself."""
    return message.error() is not None and message.error().code() in _PASSING


def span(
    consumer: Consumer,
    config: Config,
    where: TopicPartition,
    end: int,
    check: Callable[[int, int], None] | None = None,
) -> Iterator[list[Any]]:
    """Yield the messages of one partition from ``where`` up to ``end``, as they come.

    ``check`` raises if an offset of a partition is not there any more; it is asked where the broker says so.
    """
    at = where.offset
    consumer.assign([where])
    heard = time.monotonic()
    while at < end:
        arrived = [m for m in take(consumer, 1.0) if m.partition() == where.partition]
        records, at, failed = _before(arrived, end, at)
        if records:
            yield records
        if failed is not None:
            if check is not None and failed.error().code() in failures.LOST_OFFSET:
                check(where.partition, at)
            raise trouble(failed, config, at)
        if arrived:
            heard = time.monotonic()
        elif time.monotonic() - heard > STALLED_SECONDS:
            raise LogUnavailable(
                f'Kafka does not deliver topic "{where.topic}"',
                detail=f"partition {where.partition}, offset {at}",
            )


def _before(arrived: list[Any], end: int, at: int) -> tuple[list[Any], int, Any]:
    """Return the records before the end, the place reached, and what failed there, if anything."""
    records = []
    for message in arrived:
        if message.error() is None:
            at = message.offset() + 1
            if at <= end:
                records.append(message)
        elif is_end(message):
            at = max(at, message.offset())
        elif not is_transient(message):
            return records, at, message
    return records, at, None


def trouble(message: Any, config: Config, at: int) -> Exception:
    """Return the error that a message stands for."""
    where = f'read topic "{message.topic()}", partition {message.partition()}, at offset {at}'
    return failures.translated(message.error(), config, where)


def last_sequences(
    config: Config, topic: str, producer: str, spans: Mapping[int, tuple[int, int]]
) -> dict[int, int]:
    """Return the newest sequence number of a producer in each partition where it has records."""
    found: dict[int, int] = {}
    name = producer.encode()
    consumer = Consumer(config.consumer(READER_GROUP))
    try:
        for partition, (start, end) in spans.items():
            for messages in span(consumer, config, TopicPartition(topic, partition, start), end):
                for headers in (dict(m.headers() or ()) for m in messages):
                    if headers.get(PRODUCER) == name and SEQUENCE in headers:
                        found[partition] = max(found.get(partition, -1), int(headers[SEQUENCE]))
    finally:
        consumer.close()
    return found
