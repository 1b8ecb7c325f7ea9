"""Reading without a group: spans of partitions, and following what arrives.

Invariant: reading commits nothing and leaves nothing behind on the broker.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa
from confluent_kafka import Consumer, TopicPartition

from headwater.errors import LogUnavailable, is_transient
from headwater.log.kafka import failures, incoming, scan
from headwater.log.kafka.catalog import KafkaCatalog, KafkaTopic
from headwater.log.kafka.registry import READER_GROUP
from headwater.log.position import check_within

FOLLOW_SECONDS = 1.0
AWAY_SECONDS = 0.2


class Reader:
    """Reads partitions of one topic."""

    def __init__(self, catalog: KafkaCatalog, known: KafkaTopic, meta: bool):
        self._catalog, self._first, self._meta = catalog, known, meta
        self._config = catalog.cluster.config
        self._patient = False

    def bounded(self, starts: Mapping[int, int], ends: Mapping[int, int]) -> Iterator[pa.RecordBatch]:
        """Yield each partition's records between its start and its end, one partition after the other."""
        consumer = Consumer(self._config.consumer(READER_GROUP))
        try:
            for partition, start in starts.items():
                if start < ends.get(partition, 0):
                    yield from self._partition(consumer, partition, start, ends[partition])
        finally:
            consumer.close()

    def following(
        self, starts: Mapping[int, int], all_partitions: bool, stop: threading.Event | None
    ) -> Iterator[pa.RecordBatch]:
        """Yield records as they arrive, until told to stop; of new partitions too if it is about all."""
        for partition, start in starts.items():
            self._check(partition, start)
        self._patient = True  # a broker that is away is waited for, as its client does
        consumer = Consumer(self._config.consumer(READER_GROUP))
        try:
            yield from self._follow(consumer, dict(starts), all_partitions, stop)
        finally:
            consumer.close()

    def _follow(
        self,
        consumer: Consumer,
        places: dict[int, int],
        all_partitions: bool,
        stop: threading.Event | None,
    ) -> Iterator[pa.RecordBatch]:
        assigned = 0
        while stop is None or not stop.is_set():
            if all_partitions:
                places |= dict.fromkeys(range(len(places), self._known().topic.partitions), 0)
            if len(places) > assigned:
                consumer.assign([TopicPartition(self._name, p, at) for p, at in places.items()])
                assigned = len(places)
            for messages in self._arrived(consumer, places):
                yield from self._decoded(messages)
                places[messages[-1].partition()] = messages[-1].offset() + 1

    def _arrived(self, consumer: Consumer, places: Mapping[int, int]) -> Iterable[list[Any]]:
        """Return what arrives within a second, by partition."""
        arrived: dict[int, list[Any]] = {}
        for message in scan.take(consumer, FOLLOW_SECONDS):
            if message.error() is None:
                arrived.setdefault(message.partition(), []).append(message)
            elif not scan.is_end(message) and not scan.is_transient(message):
                raise self._trouble(message, places)
        return arrived.values()

    @property
    def _name(self) -> str:
        return self._first.topic.name

    def _known(self) -> KafkaTopic:
        while True:
            try:
                return self._catalog.recent(self._name, self._first.id)
            except LogUnavailable as error:
                if not (self._patient and is_transient(error)):
                    raise
                time.sleep(AWAY_SECONDS)

    def _partition(
        self, consumer: Consumer, partition: int, start: int, end: int
    ) -> Iterator[pa.RecordBatch]:
        self._check(partition, start)
        where = TopicPartition(self._name, partition, start)
        with failures.translating_errors(self._config, f'read topic "{self._name}"'):
            for messages in scan.span(consumer, self._config, where, end, self._check):
                yield from self._decoded(messages)

    def _check(self, partition: int, start: int) -> None:
        check_within(
            self._name, partition, start, self._catalog.cluster.extents(self._name, [partition])[partition]
        )

    def _trouble(self, message: Any, starts: Mapping[int, int]) -> Exception:
        if message.error().code() in failures.LOST_OFFSET:
            self._check(message.partition(), starts[message.partition()])
        return scan.trouble(message, self._config, message.offset())

    def _decoded(self, messages: list[Any]) -> Iterator[pa.RecordBatch]:
        batch, error = incoming.decode(incoming.records(messages), self._known(), self._meta)
        if len(batch):
            yield batch
        if error is not None:
            raise error
