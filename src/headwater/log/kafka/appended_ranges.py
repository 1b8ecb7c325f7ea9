"""Appended ranges of a Kafka partition: the broker tells where it ends, a few records tell the time.

Producers are not told apart, for that would mean to read everything: time is that of the newest
records before the end of each range.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from confluent_kafka import Consumer, TopicPartition

from headwater.log.appended_range import AppendedRange
from headwater.log.kafka import incoming, scan
from headwater.log.kafka.catalog import KafkaCatalog, Known
from headwater.log.kafka.registry import READER_GROUP
from headwater.topic import Topic

SIZE = 10_000
"""Offsets of a range: its time counts when all of it is read, so it is less than any limit of a plan."""
LOOK = 16
"""How many offsets at an end are looked at: transactions leave markers there, which have no time."""


def appended_ranges(
    catalog: KafkaCatalog, topic: Topic, partition: int, start: int
) -> Iterator[AppendedRange]:
    """Yield ranges of at most ``SIZE`` offsets, and the marks found at their ends."""
    known, config = catalog.recent(topic.name, topic.id), catalog.cluster.config
    last = catalog.cluster.ends(topic.name, [partition])[partition]
    if start >= last:
        return
    consumer = Consumer(config.consumer(READER_GROUP))

    def between(base: int, end: int) -> list[Any]:
        where = TopicPartition(topic.name, partition, base)
        found = [m for group in scan.span(consumer, config, where, end) for m in group]
        catalog.recent(topic.name, topic.id)  # or else these may be another topic's
        return found

    try:
        began = None
        for base in range(start, last, SIZE):
            end = min(base + SIZE, last)
            found = between(max(base, end - LOOK), end)
            if began is None:  # the others began no earlier than the one before them has ended
                began = _first(found if end - base <= LOOK else between(base, base + LOOK))
            made = _appended_range(known, found, (partition, base, end), began)
            yield made
            yield from _marks(found, partition)
            began = made.received
    finally:
        consumer.close()


def _first(found: list[Any]) -> int:
    return min((m.timestamp()[1] * 1000 for m in found), default=0)


def _appended_range(known: Known, found: list[Any], place: tuple[int, int, int], began: int) -> AppendedRange:
    # A record that does not fit is met again, and told, when it is read.
    batch, _ = incoming.decode(incoming.records(found), known, True)
    occurred = batch.column("_occurred").cast(pa.int64()) if known.topic.event_time else None
    newest = pc.max(occurred).as_py() if occurred is not None else None
    received = max((m.timestamp()[1] * 1000 for m in found), default=0)
    return AppendedRange(*place, "", received, newest, first=min(began, received))


def _marks(found: list[Any], partition: int) -> Iterator[AppendedRange]:
    for message in found:
        time = incoming.mark(message) if message.value() is None else None
        if time is not None:
            producer = dict(message.headers())["hw.producer"].decode()
            at = message.offset() + 1
            yield AppendedRange(partition, at, at, producer, message.timestamp()[1] * 1000, time, True)
