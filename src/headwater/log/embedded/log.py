"""The embedded log behind the common interface: it wires storage, producers, groups and maintenance."""

from __future__ import annotations

import shutil
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args

import pyarrow as pa

from headwater import topic as topics
from headwater import topic_errors
from headwater.errors import DamagedLog, RowError, UnreadableRecord, UsageError
from headwater.log import computed_columns
from headwater.log.appended_range import AppendedRange
from headwater.log.conditional import check_topic
from headwater.log.embedded import archive as archives
from headwater.log.embedded import verify
from headwater.log.embedded.appended_ranges import appended_ranges
from headwater.log.embedded.appender import EmbeddedAppender
from headwater.log.embedded.catalog import StoredTopic
from headwater.log.embedded.conditional_appender import EmbeddedConditionalAppender
from headwater.log.embedded.consumer import EmbeddedConsumer
from headwater.log.embedded.end_marks import EndMarks
from headwater.log.embedded.failures import translating_errors, unusable
from headwater.log.embedded.groups import Member, holds_lock
from headwater.log.embedded.maintenance import Maintenance
from headwater.log.embedded.partition.frame import Compression
from headwater.log.embedded.partition.writer import SEGMENT_BYTES
from headwater.log.embedded.partition_stats import PartitionStats
from headwater.log.embedded.queue import EmbeddedQueue, QueueOpener, listing
from headwater.log.embedded.queue.store import queue_names
from headwater.log.embedded.state_store import SharedEpochs
from headwater.log.embedded.storage import Storage
from headwater.log.embedded.stream import RecordReader
from headwater.log.embedded.wakeup import Wakeup
from headwater.log.interface import Log, no_formats
from headwater.log.position import Extent, Start, check_start, check_within
from headwater.log.queue import check_alterable
from headwater.log.queue_report import QueueStatus
from headwater.log.queue_settings import QueueSettings
from headwater.log.report import Finding, Lag, TopicInfo, Verification
from headwater.topic import Topic
from headwater.values import jsonl
from headwater.values.keys import key_bytes

Durability = Literal["fsync", "os"]
FOLLOW_SECONDS = 1.0
_T = TypeVar("_T")


class EmbeddedLog(Log):
    """A log in a directory."""

    def __init__(
        self,
        root: Path,
        *,
        durability: Durability = "fsync",
        compression: Compression = "lz4",
        segment_bytes: int = SEGMENT_BYTES,
    ):
        _check_choice("durability", durability, get_args(Durability))
        _check_choice("compression", compression, get_args(Compression))
        root = root.absolute()  # a program may go to another directory
        self.root = root
        self.url = f"file:{root}"
        self.durability = durability
        self.compression: Compression = compression
        self._storage = Storage(root, fsync=durability == "fsync", segment_bytes=segment_bytes)
        self._maintenance = Maintenance(self._storage)
        self._declared: dict[str, Topic] = {}
        """How topics are read here, where that is more than what they store."""
        self._end_marks = EndMarks()

    # Topics

    def topic(self, name: str) -> Topic:
        """Return a topic's declaration."""
        stored = self._storage.catalog.get(name).topic
        return topics.overlaid(stored, self._declared[name]) if name in self._declared else stored

    def topics(self) -> list[Topic]:
        """Return every topic, by name."""
        return [self._storage.catalog.get(name).topic for name in self._storage.catalog.names()]

    def derived_directory(self, topic: str) -> Path:
        """Return the directory of a topic."""
        return self._storage.catalog.get(topic).directory

    def read_as(self, topic: Topic) -> None:
        """Read a topic with the columns that a declaration computes, in this object alone."""
        if not topic.plain:
            raise no_formats(f'topic "{topic.name}"', topic.format, topic.key_format)
        if topic.read_otherwise and self._declared.setdefault(topic.name, topic) != topic:
            raise topic_errors.two_declarations(topic)

    def describe(self, name: str) -> TopicInfo:
        """Return a topic with its sizes, rates, oldest and newest record."""
        stored = self._storage.catalog.get(name)
        rate = sum(self._all_stats(stored, PartitionStats.rate))
        return TopicInfo(stored.topic, tuple(self._all_stats(stored, PartitionStats.describe)), rate)

    def alter_topic(self, name: str, **changes: Any) -> Topic:
        """Add nullable columns, or change partitions, retention, cleanup, archive."""
        check_alterable(
            name, changes, lambda: [group for topic, group in queue_names(self.root) if topic == name]
        )
        return self._storage.alter(name, changes).topic

    def delete_topic(self, name: str) -> None:
        """Remove a topic, its records and archive."""
        stored = self._storage.catalog.remove(name)
        self._storage.state.forget(stored.id)
        for members in (self.root / "groups").glob(f"*@{stored.id}"):
            shutil.rmtree(members, ignore_errors=True)
        archived = archives.topic_directory(self.root, stored)
        if archived is not None:
            shutil.rmtree(archived, ignore_errors=True)

    # Groups

    def consumer(
        self, topic: str, group: str, *, start: Start = "earliest", meta: bool = False
    ) -> EmbeddedConsumer:
        """Join a group and return its new member."""
        stored = self._storage.catalog.get(topic)
        topics.check_name("group", group)
        check_start(start, stored.topic)
        directory = self._storage.members(stored.id, group)
        with translating_errors(self.root):
            member = Member(
                self._storage.state,
                directory,
                group,
                stored.topic,
                lambda: self._storage.current(stored.topic).topic.partitions,
            )
        return EmbeddedConsumer(
            lambda: self._storage.current(stored.topic),
            member,
            lambda: self._storage.state.committed(group, stored.id),
            lambda: self._start(stored, start),
            lambda number, offset: self._reader(stored, number, offset, meta),
        )

    def groups(self) -> list[str]:
        """Return the names of all groups that have committed or have members."""
        state, query = self._storage.existing_state, "SELECT grp FROM offsets UNION SELECT grp FROM members"
        return [] if state is None else [str(row[0]) for row in state.rows(f"{query} ORDER BY grp")]

    def has_queue(self, topic: str, group: str) -> bool:
        """Tell whether a group has a queue over a topic."""
        return (topic, group) in queue_names(self._storage.root)

    def queues(self) -> list[QueueStatus]:
        """Return how every queue is doing."""
        return listing.queues(self, self._storage)

    def delete_queue(self, topic: str, group: str) -> None:
        """Forget a queue; its topic and its dead letters stay."""
        QueueOpener(self, self._storage).delete(topic, group)

    # Maintenance

    def compact(self, topic: str) -> None:
        """Apply the topic's cleanup now: retention, or compaction to the newest of each key."""
        stored = self._storage.catalog.get(topic)
        self._maintenance.now(stored)

    def verify(self, topic: str | None = None) -> Verification:
        """Check every checksum, and the sequence of every producer."""
        total = Verification()
        for name in [topic] if topic is not None else self._storage.catalog.names():
            try:
                stored = self._storage.catalog.get(name)
            except DamagedLog as error:
                total += Verification(findings=(Finding(name, None, f"{error.message}: {error.detail}"),))
                continue
            for number in range(stored.topic.partitions):
                total += self._storage.with_retry(stored, partial(self._verify, stored, number))
        return total

    def close(self) -> None:
        """Wait for maintenance under way and release the state."""
        self._maintenance.wait()
        self._storage.close()

    # What the interface leaves to a backend

    def _add_topic(self, topic: Topic) -> Topic:
        return self._storage.catalog.add(topic).topic

    def _appender(self, topic: str, id: str | None) -> EmbeddedAppender:
        stored = self._storage.catalog.get(topic)
        appender = EmbeddedAppender(
            id if id is not None else f"anonymous-{uuid.uuid4().hex}",
            SharedEpochs(self._storage.state, stored.id, id) if id is not None else None,
            lambda: self._storage.current(stored.topic).topic,
            lambda number: self._storage.partition(stored, number, lambda: self._maintenance.begin(stored)),
            self.compression,
        )
        self._maintenance.begin(stored)
        return appender

    def _conditional_appender(self, topic: str, id: str | None) -> EmbeddedConditionalAppender:
        stored = self._storage.catalog.get(topic)
        for number in range(stored.topic.partitions):  # a power loss may leave older heads
            self._storage.head(stored, number)
        appender = self._appender(topic, id)
        return EmbeddedConditionalAppender(appender, stored.directory, check_topic, self._storage.fsync)

    def _extents(self, topic: Topic, numbers: Sequence[int]) -> dict[int, Extent]:
        return self._stats(topic, numbers, PartitionStats.extent)

    def _offsets(
        self, topic: Topic, to: Literal["earliest", "latest"] | datetime, numbers: Sequence[int]
    ) -> dict[int, int]:
        return self._stats(topic, numbers, lambda stats: stats.resolve(to))

    def _read_between(
        self, topic: Topic, first: Mapping[int, int], last: Mapping[int, int], meta: bool
    ) -> Iterator[pa.RecordBatch]:
        stored = self._storage.current(topic)
        if not topic.read_otherwise:
            return self._spans(stored, first, last, meta)
        return self._completed(self._spans(stored, first, last, True), topic, meta)

    def _follow(
        self,
        topic: Topic,
        first: Mapping[int, int],
        meta: bool,
        every: bool,
        stop: threading.Event | None,
    ) -> Iterator[pa.RecordBatch]:
        stored = self._storage.current(topic)
        if not topic.read_otherwise:
            return self._arriving(stored, first, meta, every, stop)
        return self._completed(self._arriving(stored, first, True, every, stop), topic, meta)

    def _completed(
        self, batches: Iterator[pa.RecordBatch], topic: Topic, meta: bool
    ) -> Iterator[pa.RecordBatch]:
        """Yield batches, which have all metadata, with what is computed of them."""
        stored = self._storage.catalog.get(topic.name).topic.key
        for batch in batches:
            whole = computed_columns.complete(batch, topic, partial(_keys, batch, stored))
            read = computed_columns.selected(whole, topic, meta)
            for row, reason in computed_columns.uncomputed(whole, topic):
                if row:
                    yield read.slice(0, row)
                raise _unreadable(whole, row, topic, reason)
            yield read

    def _lag(self, group: str) -> list[Lag]:
        state, lags = self._storage.existing_state, list[Lag]()
        if state is None:
            return lags
        for name in self._storage.catalog.names():
            stored = self._storage.catalog.get(name)
            committed = state.committed(group, stored.id)
            if committed or self._has_members(group, stored) or state.former(group, stored.topic):
                lags += self._all_stats(stored, partial(PartitionStats.lag, group=group, committed=committed))
        return lags

    def _set_committed(self, group: str, topic: Topic, offsets: Mapping[int, int]) -> None:
        self._storage.state.set_committed(group, topic, offsets)
        directory = self._storage.members(topic.id, group)
        if directory.is_dir():
            (directory / "changed").write_bytes(b"")

    def _forget_group(self, group: str) -> bool:
        def is_living(topic: str, member: str) -> bool:
            return holds_lock(self._storage.members(topic, group) / member)

        return self._storage.state.forget_group(group, is_living)

    def _open_queue(
        self, topic: Topic, group: str, settings: QueueSettings | None, start: Start
    ) -> EmbeddedQueue:
        def first() -> Mapping[int, int]:
            return self._resolve_offsets(topic, start, range(topic.partitions))

        stored = self._storage.catalog.get(topic.name).topic  # without what is computed here
        return QueueOpener(self, self._storage).open(stored, group, settings, first)

    # Inside

    def _start(self, stored: StoredTopic, start: Start) -> Mapping[int, int]:
        """Return where a group begins that has committed nothing yet."""
        topic = self._storage.current(stored.topic).topic
        return self._resolve_offsets(topic, start, range(topic.partitions))

    def _reader(self, stored: StoredTopic, number: int, offset: int, meta: bool) -> RecordReader:
        """Open a partition where a group is, if it holds that offset."""
        check_within(stored.topic.name, number, offset, self._stat(stored, number, PartitionStats.extent))
        return self._storage.reader(stored, number, offset, meta)

    def _stats(
        self, topic: Topic, numbers: Sequence[int], stat: Callable[[PartitionStats], _T]
    ) -> dict[int, _T]:
        stored = self._storage.current(topic)
        return {number: self._stat(stored, number, stat) for number in numbers}

    def _all_stats(self, stored: StoredTopic, stat: Callable[[PartitionStats], _T]) -> list[_T]:
        return [self._stat(stored, number, stat) for number in range(stored.topic.partitions)]

    def _stat(self, stored: StoredTopic, number: int, stat: Callable[[PartitionStats], _T]) -> _T:
        return self._storage.with_retry(stored, lambda: stat(PartitionStats(self._storage, stored, number)))

    def _verify(self, stored: StoredTopic, number: int) -> Verification:
        directory = self._storage.directory(stored, number)
        archived = archives.listing(archives.partition_directory(self.root, stored, number))
        return verify.verify_partition(stored.topic.name, number, directory, archived)

    def _appended_ranges(self, topic: Topic, partition: int, start: int) -> Iterator[AppendedRange]:
        stored = self._stored_ranges(topic, partition, start)
        if topic.event_time == topic.stored_event_time and topic.producer is None:
            return stored
        key = self._storage.catalog.get(topic.name).topic.key

        def read(first: int, last: int) -> Iterator[pa.RecordBatch]:
            for batch in self._spans(
                self._storage.current(topic), {partition: first}, {partition: last}, True
            ):
                yield computed_columns.complete(batch, topic, partial(_keys, batch, key))

        return computed_columns.ranges(stored, read)

    def _stored_ranges(self, topic: Topic, partition: int, start: int) -> Iterator[AppendedRange]:
        """Yield appended ranges, asked for one by one; where a file vanishes, go on with what replaced it."""
        stored = self._storage.current(topic)
        published = self._storage.with_retry(stored, lambda: self._storage.head(stored, partition))
        while True:
            archived = archives.listing(archives.partition_directory(self.root, stored, partition))
            try:
                if start == published.end:  # asked again and again where nothing comes
                    yield from self._end_marks.since(stored, partition, published)
                    return
                for each in appended_ranges(
                    stored.partition(partition), partition, published, archived, start
                ):
                    self._storage.current(
                        stored.topic
                    )  # a topic made again has its files in the same directory
                    yield each
                    start = each.end
                return
            except FileNotFoundError:
                self._storage.current(stored.topic)
            except OSError as error:
                raise unusable(self.root, error) from None

    def _has_members(self, group: str, stored: StoredTopic) -> bool:
        query = "SELECT 1 FROM members WHERE grp = ? AND topic = ? LIMIT 1"
        return bool(self._storage.state.rows(query, (group, stored.id)))

    # The generators open their files when they are first asked, so that one that never is leaks none.

    def _spans(
        self, stored: StoredTopic, first: Mapping[int, int], last: Mapping[int, int], meta: bool
    ) -> Iterator[pa.RecordBatch]:
        for number, offset in first.items():
            yield from self._storage.reader(stored, number, offset, meta).until(last[number])

    def _arriving(
        self,
        stored: StoredTopic,
        first: Mapping[int, int],
        meta: bool,
        every: bool,
        stop: threading.Event | None,
    ) -> Iterator[pa.RecordBatch]:
        with ExitStack() as stack:
            readers: list[RecordReader] = []
            wanted = dict(first)
            while stop is None or not stop.is_set():
                if wanted:
                    new = [self._storage.reader(stored, n, offset, meta) for n, offset in wanted.items()]
                    readers += [stack.enter_context(closing(each)) for each in new]
                    heads = [stored.partition(r.number) / "head" for r in readers]
                    wakeup = stack.enter_context(closing(Wakeup(heads)))
                batches = [batch for each in readers if (batch := each.next()) is not None]
                yield from batches
                count = self._storage.current(stored.topic).topic.partitions
                wanted = dict.fromkeys(range(len(readers), count), 0) if every else {}
                if not batches and not wanted:
                    wakeup.wait(FOLLOW_SECONDS)


def _keys(batch: pa.RecordBatch, columns: Sequence[str]) -> pa.Array:
    """Return the keys of records as bytes, none where a topic has none."""
    if not columns:
        return pa.nulls(len(batch), pa.binary())
    return key_bytes([batch.column(name) for name in columns]).cast(pa.binary())


def _unreadable(batch: pa.RecordBatch, row: int, topic: Topic, reason: RowError) -> UnreadableRecord:
    place = (batch.column("_partition")[row].as_py(), batch.column("_offset")[row].as_py())
    value = jsonl.encode(batch.slice(row, 1).select(topic.schema.names), topic)[0]
    return UnreadableRecord(topic.name, place, reason, value)


def _check_choice(option: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        quoted = [f'"{choice}"' for choice in choices]
        raise UsageError(f'{option} is {", ".join(quoted[:-1])} or {quoted[-1]}, not "{value}"')
