"""Which transactions are whole: a topic with a record for each, written when all of its changes are durable.

Changes of a transaction go to several topics, in several appends, so who reads them cannot tell when all of
it is there. A record of this topic says how many changes a transaction has, by topic, and the ends of all
captured topics at a moment when everything in them is whole: up to there no transaction is in part.

Transactions are held back until nothing of a later one is written that is not whole, and are told before such
a one begins. After a crash the topics may have changes of transactions that are not told yet: what the log
has behind the number of the next change is not within the ends. Invariant: a transaction is told once; who
reads the topics up to the ends of a record sees whole transactions alone, that one and all before it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.capture.change import (
    INSERT,
    Delivery,
    Flags,
    Numbers,
    TableChanges,
    Transactions,
    Truncation,
)
from headwater.capture.outbox.event_writer import EventWriter
from headwater.capture.source import CaptureSource
from headwater.capture.state import CaptureState, Offsets
from headwater.capture.writing.table_writer import TableWriter
from headwater.closing import Closing
from headwater.errors import TopicError
from headwater.log import Log, Position
from headwater.schema import TIMESTAMP

SUFFIX = ".transactions"
COUNTS = pa.map_(pa.string(), pa.int64())
ENDS = pa.map_(pa.string(), pa.map_(pa.int32(), pa.int64()))
IDS = pa.map_(pa.string(), pa.string())
SCHEMA = pa.schema(
    {
        "transaction": pa.string(),
        "position": pa.string(),
        "committed_at": TIMESTAMP,
        "changes": pa.int64(),
        "topics": COUNTS,
        "ends": ENDS,
        "topic_ids": IDS,
    }
)
Writer = TableWriter | EventWriter


@dataclass(frozen=True)
class Part:
    """Changes of a delivery that are written together."""

    delivery: Delivery
    first: int
    """The number of its first transaction."""
    end: int
    """The number behind its last one."""
    alone: bool
    """Whether it may be read in part while it is written: it is not whole, or a table is emptied in it."""
    whole: bool


@dataclass
class _Told:
    """Transactions that are whole, and not told yet."""

    id: list[str] = field(default_factory=list)
    position: list[str] = field(default_factory=list)
    committed: list[int] = field(default_factory=list)
    counts: list[Mapping[str, Numbers]] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)


def parts(delivery: Delivery, whole: bool) -> Iterator[Part]:
    """Yield a delivery in parts; whether its last transaction is ``whole`` is for the caller to say."""
    if not delivery.changes:
        return
    count = len(delivery.changes[0].transactions.id)
    last = max(each.end[0] for each in delivery.changes if len(each))
    emptied = {each.transaction for each in delivery.changes if isinstance(each, Truncation)}
    alone = emptied if whole else emptied | {last}
    cuts = sorted({0, count, *alone, *(number + 1 for number in alone)})
    for first, end in pairwise(cuts):
        chosen = tuple(_between(delivery.changes, first, end))
        if chosen:
            yield Part(Delivery(chosen), first, end, first in alone, whole or end <= last)


def _between(
    changes: Sequence[TableChanges | Truncation], first: int, end: int
) -> Iterator[TableChanges | Truncation]:
    for each in changes:
        if isinstance(each, Truncation):
            if first <= each.transaction < end:
                yield each
            continue
        start, stop = np.searchsorted(each.transaction, [first, end])
        if stop > start:
            yield each if stop - start == len(each) else each.part(int(start), int(stop))


class TransactionsTopic(Closing):
    """Tells of whole transactions, behind the writers of a capture's topics."""

    def __init__(self, log: Log, capture: str, source: CaptureSource, state: CaptureState):
        self._log, self._source, self.topic = log, source, capture + SUFFIX
        _declare(log, self.topic)
        self._producer = log.producer(self.topic, id=f"capture.{capture}")
        end = log.resolve(self.topic, "latest").offsets[0]
        self.since = end if state.transactions_since is None else min(end, state.transactions_since)
        """Where the topic ended when this capture began: what is before is of another one."""
        newest = self._newest(end)
        self._told_until: str | None = None if newest is None else newest["position"]
        if self._told_until is not None and not source.passed(state.position, self._told_until):
            source.end_first_at(self._told_until)  # what was told is whole when it comes again
        self._ends: dict[str, Position] = {} if newest is None else ends_of(newest)
        self._carried = dict(state.open_changes)
        self._open: tuple[str, str, int] | None = None
        self._counts: dict[str, Numbers] = {}
        self._pending = _Told()

    @property
    def open_changes(self) -> Mapping[str, int]:
        """How many changes of the transaction at hand are written, by topic."""
        return dict(self._carried)

    def count(self, topic: str, changes: TableChanges, events: bool) -> None:
        """Take in changes that are written."""
        rows = changes.transaction[changes.operation == INSERT] if events else changes.transaction
        size = len(changes.transactions.id)
        found = np.bincount(rows, minlength=size).astype(np.int64)
        self._counts[topic] = self._counts.get(topic, np.zeros(size, np.int64)) + found

    def count_truncation(self, topic: str, emptied: Truncation) -> None:
        """Take in that a table was emptied: one change."""
        found = np.zeros(len(emptied.transactions.id), np.int64)
        found[emptied.transaction] = 1
        self._counts[topic] = self._counts.get(topic, 0) + found

    def begin(self, part: Part) -> None:
        """Take in what part comes: behind the transaction at hand, or more of it."""
        once = part.delivery.changes[0].transactions
        if self._open is not None and self._open[0] != once.id[part.first]:
            self._end_open()
        self._counts = {}

    def carry(self, once: Transactions, number: int) -> None:
        """Note what is written of a transaction, in the middle of it."""
        self._open = once.id[number], once.position[number], int(once.committed[number])
        for topic, found in self._counts.items():
            self._carried[topic] = self._carried.get(topic, 0) + int(found[number])
        self._counts = {}

    def end(self, part: Part) -> None:
        """Take in that a part is written."""
        once = part.delivery.changes[0].transactions
        if not part.whole:
            self.carry(once, part.first)
            return
        size = len(once.id)
        for topic, count in self._carried.items():
            found = self._counts.setdefault(topic, np.zeros(size, np.int64))
            found[part.first] += count
        self._carried, self._open = {}, None
        chosen = _some(self._counts, part.first, part.end, size)
        self._pend(once, chosen)
        self._counts = {}

    def pass_position(self, position: str | None) -> None:
        """Take in how far the stream is: the transaction at hand may have ended."""
        if self._open is not None and position is not None and self._source.passed(position, self._open[1]):
            self._end_open()

    def write(self, writers: Sequence[Writer]) -> None:
        """Tell of the transactions that are whole: all of their changes are durable."""
        if not self._pending.sizes:
            return
        told, self._pending = self._pending, _Told()
        ends = {end.topic: end for each in writers for end in self._ends_of(each)}
        table = self._untold(_table(told, ends))
        self._ends = ends
        if len(table):
            self._producer.send_batch(table)
            self._producer.flush()

    def close(self) -> None:
        """Let go of the topic."""
        self._producer.close()

    def _end_open(self) -> None:
        assert self._open is not None
        id, position, committed = self._open
        once = Transactions((id,), (position,), np.array([committed], np.int64))
        self._counts = {topic: np.array([count], np.int64) for topic, count in self._carried.items()}
        self._carried, self._open = {}, None
        self._pend(once, np.ones(1, bool))
        self._counts = {}

    def _pend(self, once: Transactions, chosen: Flags) -> None:
        numbers = np.flatnonzero(chosen)
        told = self._pending
        told.id += [once.id[number] for number in numbers.tolist()]
        told.position += [once.position[number] for number in numbers.tolist()]
        told.committed += once.committed[numbers].tolist()
        told.counts.append({topic: found[numbers] for topic, found in self._counts.items()})
        told.sizes.append(len(numbers))

    def _untold(self, table: pa.Table) -> pa.Table:
        """Return transactions without those that were told before a crash."""
        if self._told_until is None:
            return table
        positions = table.column("position").to_pylist()
        start = 0
        while start < len(positions) and self._source.passed(self._told_until, positions[start]):
            start += 1
        if start < len(positions):
            self._told_until = None  # all that follow are behind it
        return table.slice(start)

    def _ends_of(self, writer: Writer) -> Iterator[Position]:
        """Yield where its topics end, without what was written before a crash and comes again."""
        for topic, stored in writer.stored.items():
            latest = self._log.resolve(topic, "latest")
            again = self._first_behind(topic, latest, writer) if writer.sequence < stored else {}
            yield Position(topic, {**latest.offsets, **again}, latest.id)

    def _first_behind(self, topic: str, latest: Position, writer: Writer) -> Offsets:
        """Return where, in each partition, changes begin that come again."""
        earliest, told = self._log.resolve(topic, "earliest"), self._ends.get(topic)
        known = told.offsets if told is not None and told.id == latest.id else {}
        found: dict[int, int] = {}
        start = {
            part: min(max(known.get(part, 0), first), latest.offsets[part])
            for part, first in earliest.offsets.items()
        }
        for batch in self._log.read(topic, start=Position(topic, start, latest.id), end=latest, meta=True):
            again = pc.and_(
                pc.equal(batch.column("_producer"), writer.producers[0]),
                pc.greater_equal(batch.column("_sequence"), writer.sequence),
            )
            at = pc.index(again, True).as_py()
            if at >= 0:
                found.setdefault(batch.column("_partition")[0].as_py(), batch.column("_offset")[at].as_py())
        return found

    def _newest(self, end: int) -> dict[str, Any] | None:
        """Return the last record of this capture, if it has told of any transaction."""
        for start in (end - 1, self.since):  # on a broker the last offset may be none of a record
            if end > start >= self.since:
                batches = [batch for batch in self._log.read(self.topic, 0, start, end) if len(batch)]
                if batches:
                    row: dict[str, Any] = batches[-1].slice(len(batches[-1]) - 1).to_pylist()[0]
                    return row
        return None


def _declare(log: Log, topic: str) -> None:
    if topic not in {each.name for each in log.topics()}:
        log.create_topic(topic, SCHEMA, event_time="committed_at")
    elif not log.topic(topic).schema.equals(SCHEMA):
        raise TopicError(
            f'topic "{topic}" does not hold the transactions of a capture',
            hint="give the capture another name",
        )


def _some(counts: Mapping[str, Numbers], first: int, end: int, size: int) -> Flags:
    """Tell which transactions of a part have changes."""
    chosen = np.zeros(size, bool)
    for found in counts.values():
        chosen[first:end] |= found[first:end] > 0
    return chosen


def _table(told: _Told, ends: Mapping[str, Position]) -> pa.Table:
    count = len(told.id)
    topics = sorted({topic for each in told.counts for topic in each})
    matrix = np.zeros((count, len(topics)), np.int64)
    start = 0
    for counts, size in zip(told.counts, told.sizes, strict=True):
        for topic, found in counts.items():
            matrix[start : start + size, topics.index(topic)] = found
        start += size
    rows, columns = np.nonzero(matrix)
    offsets = np.concatenate([[0], np.cumsum(np.count_nonzero(matrix, axis=1))])
    names = pa.array(topics, pa.string()).take(pa.array(columns))
    by_topic = pa.MapArray.from_arrays(pa.array(offsets, pa.int32()), names, pa.array(matrix[rows, columns]))
    once = pa.array([[(topic, list(end.offsets.items())) for topic, end in ends.items()]], ENDS)
    ids = pa.array([[(topic, end.id) for topic, end in ends.items()]], IDS)
    same = pa.array(np.zeros(count, np.int64))
    return pa.table(
        {
            "transaction": pa.array(told.id, pa.string()),
            "position": pa.array(told.position, pa.string()),
            "committed_at": pa.array(told.committed, pa.int64()).cast(TIMESTAMP),
            "changes": pa.array(matrix.sum(axis=1)),
            "topics": by_topic,
            "ends": once.take(same),
            "topic_ids": ids.take(same),
        }
    )


def ends_of(row: Mapping[str, Any]) -> dict[str, Position]:
    """Return the ends that a record tells, by topic."""
    ids = dict(row["topic_ids"])
    return {topic: Position(topic, dict(offsets), ids[topic]) for topic, offsets in row["ends"]}
