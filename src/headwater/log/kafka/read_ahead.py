"""Reads a topic ahead of those who plan over it: what was appended, by whom, and what time it is there.

A thread follows all partitions that were asked for, decodes their records once, and keeps what planning needs
to know; the records themselves go into files, where a folder for them is named, so that whoever computes with
them need not fetch and decode them again. It stops ahead of the planner by ``AHEAD`` records of a partition.

Invariant: ranges of a partition cover every offset once, in order; a mark lies exactly behind its offset; and
what cannot be decoded is in no file, so that reading it from the broker tells why.
"""

from __future__ import annotations

import gc
import json
import threading
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from confluent_kafka import Consumer, Message, TopicPartition

from headwater.errors import HeadwaterError, LogUnavailable
from headwater.log.appended_range import AppendedRange
from headwater.log.kafka import failures, incoming, scan
from headwater.log.kafka.catalog import KafkaCatalog, KafkaTopic
from headwater.log.kafka.outgoing import PRODUCER
from headwater.log.kafka.registry import READER_GROUP
from headwater.log.position import check_within, offset_lost
from headwater.log.prefetched import PrefetchFolder
from headwater.topic import Topic

AHEAD = 1_000_000
"""Offsets of a partition that are read before they are planned."""
POLL_SECONDS = 0.1
SECOND = 1_000_000
_NOTHING = pa.RecordBatch.from_pylist([], schema=pa.schema([pa.field("_offset", pa.int64())]))


@dataclass
class _Partition:
    """How far one partition has been read ahead."""

    first: int
    """The offset that reading began with."""
    next: int
    """The offset up to which everything was fetched."""
    ranges: deque[AppendedRange] = field(default_factory=deque)
    received: int = 0
    """The time of receipt of the newest record: it never goes back."""
    paused: bool = False


class ReadAhead:
    """Follows one topic."""

    def __init__(self, catalog: KafkaCatalog, topic: Topic, root: Path | None):
        self._catalog, self._topic = catalog, topic
        self._folder = None if root is None else PrefetchFolder(root, topic.id)
        self._partitions: dict[int, _Partition] = {}
        self._changed = threading.Condition()
        self._failure: Exception | None = None
        self._assigned: set[int] = set()
        self._stopped = False
        self._thread: threading.Thread | None = None

    def begin(self, starts: Mapping[int, int]) -> None:
        """Let the thread follow partitions from offsets on; one that joins later has all fetched anew."""
        with self._changed:
            for partition, start in starts.items():
                self._follow(partition, start)
            self._start()
            self._changed.notify_all()

    def ranges(self, partition: int, start: int, end: int) -> Iterator[AppendedRange]:
        """Yield what was appended from an offset on to another, waiting for what is still to be fetched.

        What ends at the start or before it is forgotten.
        """
        self.begin({partition: start})
        count = 0
        while fetched := self._after(count, partition, end):
            count += len(fetched)
            yield from (_from(each, start) for each in fetched)

    def close(self) -> None:
        """Stop, and remove the files."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join()
        if self._folder is not None:
            self._folder.close()

    def _after(self, count: int, partition: int, end: int) -> list[AppendedRange]:
        """Return the ranges after the first ones, waiting for the next; none where an offset is reached."""

        def arrived() -> bool:
            current = self._partitions[partition]
            return self._failure is not None or len(current.ranges) > count or current.next >= end

        with self._changed:
            if not self._changed.wait_for(arrived, scan.STALLED_SECONDS):
                raise _stalled(self._topic, partition, self._partitions[partition].next)
            if self._failure is not None:
                raise self._failure
            return list(self._partitions[partition].ranges)[count:]

    def _follow(self, partition: int, start: int) -> None:
        """Take note that a partition is followed from an offset on, if it is not yet."""
        current = self._partitions.get(partition)
        if current is None or not self._holds(current, start) or self._failure is not None:
            self._partitions[partition] = _Partition(start, start)
            self._assigned.discard(partition)
        else:
            _forget(current, start)
        if self._folder is not None:
            self._folder.remove(partition, start)

    @staticmethod
    def _holds(current: _Partition, start: int) -> bool:
        first = current.ranges[0].base if current.ranges else current.next
        return first <= start <= current.next

    def _start(self) -> None:
        if self._thread is None or self._failure is not None:
            self._failure, self._assigned = None, set()
            self._thread = threading.Thread(target=self._run, name="headwater-read-ahead", daemon=True)
            self._thread.start()

    # In the thread

    def _run(self) -> None:
        consumer = Consumer(self._catalog.cluster.config.consumer(READER_GROUP))
        try:
            with failures.translating_errors(
                self._catalog.cluster.config, f'read topic "{self._topic.name}"'
            ):
                while not self._stopped:
                    self._assign(consumer)
                    with _without_garbage_collection():
                        self._fetch(consumer)
        except Exception as error:
            with self._changed:
                self._failure = error
                self._changed.notify_all()
        finally:
            consumer.close()

    def _assign(self, consumer: Consumer) -> None:
        """Follow the partitions that were asked for; rest those that are far enough ahead."""
        with self._changed:
            if set(self._partitions) != self._assigned:
                self._assigned = set(self._partitions)
                consumer.assign([self._at(number) for number in self._partitions])
                for current in self._partitions.values():
                    current.paused = False
            ahead = {number: self._is_ahead(current) for number, current in self._partitions.items()}
        for number, current in self._partitions.copy().items():
            if ahead[number] != current.paused:
                where = TopicPartition(self._topic.name, number)
                (consumer.pause if ahead[number] else consumer.resume)([where])
                current.paused = ahead[number]

    def _at(self, number: int) -> TopicPartition:
        """Return where to read on; a mark that lies right before the first offset is told as well."""
        current = self._partitions[number]
        earliest = self._catalog.cluster.starts(self._topic.name, [number])[number]
        if current.next < earliest:  # to begin where the records do would be to leave a gap
            raise offset_lost(self._topic.name, number, current.next, earliest)
        at = max(current.next - 1, earliest) if current.next == current.first else current.next
        return TopicPartition(self._topic.name, number, at)

    @staticmethod
    def _is_ahead(current: _Partition) -> bool:
        """Tell whether a partition rests: from ``AHEAD`` offsets on, until half of them are planned."""
        first = current.ranges[0].base if current.ranges else current.next
        return current.next - first > (AHEAD // 2 if current.paused else AHEAD)

    def _fetch(self, consumer: Consumer) -> None:
        messages = scan.take(consumer, POLL_SECONDS)
        known = self._catalog.recent(self._topic.name, self._topic.id)  # or else they may be another topic's
        ends: dict[int, int] = {}
        if any(map(Message.error, messages)):
            for message in messages:
                if scan.is_end(message):
                    ends[message.partition()] = message.offset()
                elif message.error() is not None and not scan.is_transient(message):
                    raise self._trouble(message)
            messages = [message for message in messages if message.error() is None]
        for number, records in groupby(messages, Message.partition):  # they come in runs
            assert number is not None
            self._take(number, list(records), known)
        for number, end in ends.items():
            self._reach(number, end)

    def _trouble(self, message: Any) -> Exception:
        number, cluster = message.partition(), self._catalog.cluster
        if message.error().code() in failures.LOST_OFFSET and number in self._partitions:
            extent = cluster.extents(self._topic.name, [number])[number]
            check_within(self._topic.name, number, self._partitions[number].next, extent)
        return scan.trouble(message, cluster.config, message.offset())

    def _take(self, number: int, messages: Sequence[Any], known: KafkaTopic) -> None:
        """Take in what has arrived of a partition."""
        if number not in self._assigned:
            return  # these are of a reading that is begun anew
        current = self._partitions[number]
        if messages[0].offset() >= current.next and None not in map(Message.value, messages):
            self._add(number, messages, messages[-1].offset() + 1, known)
            return
        run: list[Any] = []
        for message in messages:
            mark = incoming.mark(message) if message.value() is None else None
            if message.offset() < current.next:
                if mark is not None and message.offset() + 1 == current.first:
                    self._publish(number, [_mark(message, mark)])
                continue
            run.append(message)
            if mark is not None:
                self._add(number, run[:-1], message.offset() + 1, known)
                self._publish(number, [_mark(message, mark)])
                run = []
        if run:
            self._add(number, run, run[-1].offset() + 1, known)

    def _add(self, number: int, messages: Sequence[Any], end: int, known: KafkaTopic) -> None:
        """Keep the records of a partition up to an offset, and what they tell of time."""
        current = self._partitions[number]
        base = current.next
        batch, bad = incoming.decode_fitting(messages, known)
        if self._folder is not None:
            for first, last in _between(base, end, [messages[index].offset() for index in bad]):
                self._folder.add(
                    number, first, last, _offsets_within(_noted(batch, known.topic), first, last)
                )
        self._publish(number, _ranges(batch, known.topic, (number, base, end), current.received), end)

    def _reach(self, number: int, end: int) -> None:
        """Take in that a partition ends at an offset; before it there may be markers, but no records."""
        current = self._partitions[number]
        if number in self._assigned and end > current.next:
            if self._folder is not None:
                self._folder.add(number, current.next, end, _NOTHING)
            empty = AppendedRange(number, current.next, end, "", current.received, None)
            self._publish(number, [empty], end)

    def _publish(self, number: int, ranges: Sequence[AppendedRange], end: int | None = None) -> None:
        with self._changed:
            if number not in self._assigned:
                return
            current = self._partitions[number]
            current.ranges.extend(ranges)
            current.received = max([current.received, *(each.received for each in ranges)])
            current.next = current.next if end is None else end
            self._changed.notify_all()


@contextmanager
def _without_garbage_collection() -> Iterator[None]:
    """Look for no cycles meanwhile: thousands of messages have none, and that took a fifth of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _ranges(
    batch: pa.RecordBatch, topic: Topic, where: tuple[int, int, int], received: int
) -> list[AppendedRange]:
    """Return what each producer has appended within each second of receipt.

    The first of a second covers its offsets, which all of them share.
    """
    number, base, end = where
    if not len(batch):
        return [AppendedRange(number, base, end, "", received, None)]
    times = pc.fill_null(batch.column("_received").cast(pa.int64()), 0).to_numpy()
    times = np.maximum.accumulate(np.maximum(times, received))
    seconds = np.cumsum(np.diff(times // SECOND, prepend=times[0] // SECOND) > 0)
    edges = [base, *batch.column("_offset").to_numpy()[np.flatnonzero(np.diff(seconds)) + 1].tolist(), end]
    rows = pa.table(
        {
            "second": seconds,
            "producer": pc.fill_null(batch.column("_producer"), ""),
            "received": times,
            "occurred": batch.column("_occurred").cast(pa.int64()),
        }
    )
    wanted = [("received", "min"), ("received", "max"), ("occurred", "max")]
    grouped = rows.group_by(["second", "producer"], use_threads=False).aggregate(wanted).sort_by("second")
    ranges: list[AppendedRange] = []
    for row in grouped.to_pylist():
        first, last = edges[row["second"]], edges[row["second"] + 1]
        began, newest = row["received_min"], row["occurred_max"] if topic.event_time is not None else None
        if ranges and ranges[-1].end == last:
            first, began = last, ranges[-1].began
        ranges.append(
            AppendedRange(number, first, last, row["producer"], row["received_max"], newest, first=began)
        )
    return ranges


def _mark(message: Any, time: int) -> AppendedRange:
    producer = dict(message.headers())[PRODUCER].decode()
    number, at = message.partition(), message.offset() + 1
    return AppendedRange(number, at, at, producer, message.timestamp()[1] * 1000, time, True)


def _from(each: AppendedRange, start: int) -> AppendedRange:
    """Return what of a range lies behind an offset: its time counts all the same when its end is read."""
    return replace(each, base=start) if each.base < start and not each.mark else each


def _forget(current: _Partition, start: int) -> None:
    """Drop the ranges that end at an offset or before it; a mark that lies there is still to be told."""
    while current.ranges and current.ranges[0].end <= start:
        if current.ranges[0].mark and current.ranges[0].end == start:
            return
        current.ranges.popleft()


def _between(base: int, end: int, bad: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield the offsets from one to another without the bad ones."""
    for offset in bad:
        if base < offset:
            yield base, offset
        base = offset + 1
    if base < end:
        yield base, end


def _offsets_within(batch: pa.RecordBatch, first: int, last: int) -> pa.RecordBatch:
    low, high = np.searchsorted(batch.column("_offset").to_numpy(), [first, last])
    return batch.slice(low, high - low)


def _noted(batch: pa.RecordBatch, topic: Topic) -> pa.RecordBatch:
    """Return a batch with the notes that readers need: its own columns, and the time of a table."""
    timed = {"event_time": topic.event_time} if topic.compacted and topic.event_time is not None else {}
    return batch.replace_schema_metadata({"columns": json.dumps(topic.read_schema.names), **timed})


def _stalled(topic: Topic, partition: int, offset: int) -> HeadwaterError:
    return LogUnavailable(
        f'Kafka does not deliver topic "{topic.name}"', detail=f"partition {partition}, offset {offset}"
    )
