"""Kafka behind the common interface: it wires catalog, appenders, readers and groups.

Invariant: whatever is promised in ``headwater.log.interface`` holds here too, or is refused.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa

from headwater import durations, topic_errors
from headwater import topic as topics
from headwater.errors import UsageError
from headwater.formats.guess import DeclarationGuess, guess
from headwater.log.appended_range import AppendedRange
from headwater.log.conditional import check_topic
from headwater.log.interface import Log
from headwater.log.kafka import groups, maintenance, sample
from headwater.log.kafka.appender import KafkaAppender, NamedAppender
from headwater.log.kafka.catalog import KafkaCatalog, KafkaTopic, declare_hint
from headwater.log.kafka.cluster import Cluster, since
from headwater.log.kafka.conditional_appender import KafkaConditionalAppender
from headwater.log.kafka.config import Config
from headwater.log.kafka.consumer import KafkaConsumer
from headwater.log.kafka.queue import KafkaQueue, delete_queue, has_queue, open_queue, queues
from headwater.log.kafka.read_ahead import ReadAhead
from headwater.log.kafka.reader import Reader
from headwater.log.position import Extent, Position, Start, check_start
from headwater.log.queue import check_alterable
from headwater.log.queue_report import QueueStatus
from headwater.log.queue_settings import QueueSettings
from headwater.log.report import Lag, TopicInfo, Verification
from headwater.topic import Topic


class KafkaLog(Log):
    """A log on a Kafka cluster."""

    def __init__(self, url: str, options: Mapping[str, Any] | None = None):
        config = Config(url, options or {})
        self.url = config.url
        self._cluster = Cluster(config)
        self._catalog = KafkaCatalog(self._cluster)
        self._read_ahead: dict[str, ReadAhead] = {}
        self._prefetch_root: Path | None = None

    def __repr__(self) -> str:
        return f"KafkaLog({self.url!r})"

    # Topics

    def topic(self, name: str) -> Topic:
        """Return a topic's declaration."""
        return self._catalog.get(name).topic

    def topics(self) -> list[Topic]:
        """Return every topic, by name."""
        return [known.topic for known in self._catalog.all()]

    def describe(self, name: str) -> TopicInfo:
        """Return a topic with its offsets, rate, oldest and newest record; sizes are not known."""
        return maintenance.describe(self._cluster, self._catalog.get(name))

    def alter_topic(self, name: str, **changes: Any) -> Topic:
        """Add nullable columns, or change partitions, retention, cleanup."""
        check_alterable(name, changes, lambda: [each.group for each in self.queues() if each.topic == name])
        return self._catalog.alter(name, changes).topic

    def delete_topic(self, name: str) -> None:
        """Remove a topic, its records, and what groups had committed for it."""
        self._catalog.remove(name)

    def adopt_topic(
        self,
        name: str,
        schema: str | pa.Schema,
        *,
        key: str | Sequence[str] | None = (),
        event_time: str | None = None,
        format: str = "json",
        key_format: str | None = None,
    ) -> Topic:
        """Write a declaration for a topic that another program has made; the topic stays as it is."""
        topic = topics.create(
            name, schema, key=key, event_time=event_time, format=format, key_format=key_format
        )
        return self._catalog.adopt(topic).topic

    def guess_declaration(self, name: str) -> DeclarationGuess | None:
        """Guess how a topic could be declared that another program has made, by its newest records."""
        known = self._catalog.get(name)
        if known.declared:
            return None
        return guess(name, sample.newest(self._cluster, known.topic), known.writers)

    def disown_topic(self, name: str) -> None:
        """Withdraw the declaration of a topic that was adopted."""
        self._catalog.disown(name)

    def read_as(self, topic: Topic) -> None:
        """Read a topic of another program as a declaration says, in this object alone."""
        self._catalog.read_as(topic)

    def prefetch_into(self, root: Path) -> None:
        """Keep what ``appended_ranges`` has to read in files, for others on this machine."""
        self._prefetch_root = root

    def read_ahead(self, start: Position) -> None:
        """Begin to follow the partitions of a position from there on, all at once, and return."""
        topic = self._catalog.get(start.topic).topic
        check_start(start, topic)
        self._reading(topic).begin(start.offsets)

    # Groups

    def consumer(
        self, topic: str, group: str, *, start: Start = "earliest", meta: bool = False
    ) -> KafkaConsumer:
        """Join a group and return its new member; ``start`` applies where nothing is committed."""
        known = self._catalog.get(topic)
        topics.check_name("group", group)
        check_start(start, known.topic)

        def first(number: int) -> int | None:
            return None if start == "earliest" else self._first(known, start, number)

        return KafkaConsumer(self._catalog, known, group, start=first, meta=meta)

    def groups(self) -> list[str]:
        """Return the names of all groups that have committed or have members."""
        return groups.names(self._cluster)

    def has_queue(self, topic: str, group: str) -> bool:
        """Tell whether a group has a queue over a topic: a share group that was given its settings."""
        return has_queue(self._cluster, topic, group)

    def queues(self) -> list[QueueStatus]:
        """Return the queues whose share groups the broker knows, with what is dead in each."""
        return queues(self, self._cluster)

    def delete_queue(self, topic: str, group: str) -> None:
        """Forget how far a queue's share group is; its dead letters stay."""
        delete_queue(self._catalog, topic, group)

    # Care

    def compact(self, topic: str) -> None:
        """Refuse: the broker applies retention and compaction by itself."""
        self._catalog.get(topic)
        raise UsageError(
            f'topic "{topic}" cannot be compacted by hand on Kafka',
            detail="the broker applies retention and compaction by itself",
            hint="its pace is set on the broker: log.cleaner.backoff.ms, log.retention.check.interval.ms",
        )

    def verify(self, topic: str | None = None) -> Verification:
        """Check every checksum, every value, and the sequence of every producer."""
        total = Verification()
        for known in self._catalog.all() if topic is None else [self._catalog.get(topic)]:
            total += maintenance.verify(self._cluster, known)
        return total

    def close(self) -> None:
        """Release the connections."""
        for each in self._read_ahead.values():
            each.close()
        self._read_ahead = {}
        self._catalog.registry.close()
        self._catalog.schemas.close()

    # What the interface leaves to a backend

    def _add_topic(self, topic: Topic) -> Topic:
        return self._catalog.add(topic).topic

    def _appender(self, topic: str, id: str | None) -> KafkaAppender:
        known = self._declared(topic).topic
        if not known.computed_names.isdisjoint(known.key):
            raise UsageError(
                f'topic "{topic}" cannot be appended to: its key is computed when it is read',
                hint="declare its key as columns to append to it",
            )
        return KafkaAppender(self._catalog, topic) if id is None else NamedAppender(self._catalog, topic, id)

    def _conditional_appender(self, topic: str, id: str | None) -> KafkaConditionalAppender:
        self._declared(topic)
        return KafkaConditionalAppender(self._catalog, topic, check_topic, self._read_between)

    def _extents(self, topic: Topic, numbers: Sequence[int]) -> dict[int, Extent]:
        return self._cluster.extents(topic.name, numbers)

    def _offsets(
        self, topic: Topic, to: Literal["earliest", "latest"] | datetime, numbers: Sequence[int]
    ) -> dict[int, int]:
        if isinstance(to, datetime):
            return self._at(topic.name, to, numbers)
        ask = self._cluster.starts if to == "earliest" else self._cluster.ends
        return ask(topic.name, numbers)

    def _read_between(
        self, topic: Topic, first: Mapping[int, int], last: Mapping[int, int], meta: bool
    ) -> Iterator[pa.RecordBatch]:
        there = self._cluster.ends(topic.name, list(first))  # to wait for more would be to wait for ever
        ends = {number: min(last[number], there[number]) for number in first}
        return Reader(self._catalog, self._catalog.opened(topic), meta).bounded(first, ends)

    def _follow(
        self,
        topic: Topic,
        first: Mapping[int, int],
        meta: bool,
        every: bool,
        stop: threading.Event | None,
    ) -> Iterator[pa.RecordBatch]:
        return Reader(self._catalog, self._catalog.opened(topic), meta).following(first, every, stop)

    def _appended_ranges(self, topic: Topic, partition: int, start: int) -> Iterator[AppendedRange]:
        end = self._cluster.ends(topic.name, [partition])[partition]
        return self._reading(topic).ranges(partition, start, end)

    def _reading(self, topic: Topic) -> ReadAhead:
        """Return who reads a topic ahead."""
        if topic.id not in self._read_ahead:
            self._read_ahead[topic.id] = ReadAhead(self._catalog, topic, self._prefetch_root)
        return self._read_ahead[topic.id]

    def _lag(self, group: str) -> list[Lag]:
        return groups.lag(self._cluster, group)

    def _set_committed(self, group: str, topic: Topic, offsets: Mapping[int, int]) -> None:
        groups.set_committed(self._cluster, group, topic, offsets)

    def _forget_group(self, group: str) -> bool:
        return groups.forget(self._cluster, group)

    def _open_queue(
        self, topic: Topic, group: str, settings: QueueSettings | None, start: Start
    ) -> KafkaQueue:
        return open_queue(self, self._catalog, self._catalog.get(topic.name), group, (settings, start))

    # Inside

    def _declared(self, topic: str) -> KafkaTopic:
        known = self._catalog.get(topic)
        if not known.declared:
            raise UsageError(
                f'topic "{topic}" was made by another tool and has no schema to check rows against',
                hint=declare_hint(topic),
            )
        if not known.topic.writable:
            raise UsageError(
                f'topic "{topic}" is declared in a format that is only read',
                detail=topic_errors.formats_text(known.topic),
                hint='append with a client of that format; here "json" is written, or "avro" of a registry',
            )
        return known

    def _first(self, known: KafkaTopic, start: Start, number: int) -> int:
        """Return where a group begins in a partition of which it has committed nothing."""
        topic = self._catalog.opened(known.topic).topic
        return self._resolve_offsets(topic, start, range(topic.partitions))[number]

    def _at(self, name: str, to: datetime, numbers: Sequence[int]) -> dict[int, int]:
        # Kafka's times are in milliseconds: round up, so that nothing received before is included.
        told = self._cluster.offsets(name, numbers, since(max(0, -(-durations.micros(to) // 1000))))
        ends = self._cluster.ends(name, numbers)
        return {number: each.offset if each.offset >= 0 else ends[number] for number, each in told.items()}
