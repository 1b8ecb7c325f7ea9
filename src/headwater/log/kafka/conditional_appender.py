"""Conditional appends to Kafka, which has none: one writer owns a topic, and knows all of its records.

Opening it fences the writer before it, by the transactional id that all writers of the topic share; then it
reads the topic to its end. What it appends is one transaction, and only committed if its records lie where
they were expected: right behind the last one that was checked. So nothing can come between, not even what a
producer without conditions appends.

Invariant: a transaction is committed by the newest writer alone, and with no record before it that was not
checked.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from confluent_kafka import KafkaException

from headwater.errors import Conflict, HeadwaterError, LogUnavailable
from headwater.log import expected_version
from headwater.log.expected_version import Outgoing, Proposal
from headwater.log.kafka import groups, outgoing
from headwater.log.kafka.appender import ABORT_SECONDS, FLUSH_SECONDS, DeliveryReports, NamedAppender
from headwater.log.kafka.catalog import KafkaCatalog
from headwater.log.kafka.outgoing import OutgoingMessage
from headwater.log.record_batch import OutgoingBatch
from headwater.log.tag_index import Indexed, Place, TagIndex
from headwater.log.tags import tags_of_records
from headwater.topic import Topic
from headwater.values import keys

WRITER = "conditional-writer"
"""The producer id that all conditional producers of a topic share, so that there is one."""
_ATTEMPTS = 20
_SPAN = 500
"""Records further apart than this are read one by one: what lies between costs more than to begin anew."""

SETTLE_SECONDS = 10.0
"""How long a broker is given, after it has started, to know again where a topic ends."""
Read = Callable[[Topic, Mapping[int, int], Mapping[int, int], bool], Iterator[pa.RecordBatch]]


class _Elsewhere(Exception):
    """Records did not come to lie where they were expected: others are appending."""


class OwningAppender(NamedAppender):
    """Appends in one transaction, which is aborted unless its records lie where they are expected."""

    expected: Mapping[int, int]
    """For each partition, where it is to end."""

    def _send(self, made: Sequence[OutgoingMessage], records: OutgoingBatch | None) -> dict[int, int]:
        assert self._client is not None
        client, sent = self._client, DeliveryReports()
        try:
            client.begin_transaction()
            for piece in self._pace.pieces(made):
                self._produce(piece, sent)
            self._acknowledged(sent)
            if records is not None and sent.offsets != self.expected:
                client.abort_transaction(FLUSH_SECONDS)
                raise _Elsewhere
            newest = {} if records is None else outgoing.newest(records)
            offsets = groups.places(self.topic(), {number: last + 1 for number, last in newest.items()})
            client.send_offsets_to_transaction(offsets, self._metadata, FLUSH_SECONDS)
            self._commit(client)
        except KafkaException as error:
            if error.args[0].txn_requires_abort():
                with suppress(KafkaException):
                    client.abort_transaction(ABORT_SECONDS)
            raise
        self._last |= newest
        self._until_visible(sent.offsets)
        return sent.offsets

    def _acknowledged(self, sent: DeliveryReports) -> None:
        """Wait until the broker has said of each message where it lies."""
        assert self._client is not None
        deadline = time.monotonic() + FLUSH_SECONDS
        while len(self._client):
            self._client.poll(0.05)  # not flush, which cannot tell that this writer has been fenced
            sent.check()
            if time.monotonic() > deadline:
                raise LogUnavailable(f'Kafka did not acknowledge records of topic "{self._name}"')
        sent.check()


class KafkaConditionalAppender:
    """Checks and appends proposals for one topic; ``append`` by one thread at a time, the rest by any."""

    def __init__(self, catalog: KafkaCatalog, name: str, check: Callable[[Topic], None], read: Read):
        self._writer = OwningAppender(catalog, name, WRITER)  # first: it fences a predecessor
        self.id = self._writer.id
        self._cluster, self._check, self._read = catalog.cluster, check, read
        self._sequence = self._writer.last_sequence + 1
        self._partitions = self._writer.topic().partitions
        self._index = TagIndex(None)
        self._lock = threading.RLock()
        self._is_sure = False
        """Whether the index has all that this writer has committed."""
        self._in_flight = False
        """Whether the index has records that are on their way."""
        self._catch_up()

    def topic(self) -> Topic:
        """Return the topic as it is declared now; refuse one whose records would not all stay."""
        topic = self._writer.topic()
        self._check(topic)
        if topic.partitions != self._partitions:
            raise expected_version.moved(topic)
        return topic

    def append(self, proposals: Sequence[Proposal], rows: Outgoing) -> list[int | Conflict]:
        """Append what is accepted, durably; return the first offset of each, or its conflict."""
        for attempt in range(_ATTEMPTS):
            try:
                return self._attempt(proposals, rows)
            except _Elsewhere:
                self._is_sure = False
                time.sleep(0.01 * attempt)
            except BaseException:
                self._is_sure = False
                raise
            finally:
                self._in_flight = False
        raise LogUnavailable(
            f'topic "{rows.topic.name}" is being appended to by others all the time',
            detail="no append under conditions came between; nothing was stored",
            hint="let one conditional producer write the topic",
        )

    def ends(self) -> dict[int, int]:
        """Return where each partition ends, of what is durable."""
        with self._lock:
            return {number: self._index.reached(number).until for number in range(self._partitions)}

    def newest(self, tags: Sequence[bytes], after: Mapping[int, int]) -> dict[int, int]:
        """Return the newest offset with all the tags, in each of these partitions that has one."""
        with self._lock:
            self._follow()
            found = {
                number: self._index.newest(tags, number, first, self._index.reached(number).until)
                for number, first in after.items()
            }
        return {number: offset for number, offset in found.items() if offset is not None}

    def read(self, tags: Sequence[bytes], after: Mapping[int, int], meta: bool) -> Iterator[pa.RecordBatch]:
        """Yield the records with all the tags, from an offset on in each of these partitions."""
        topic = self.topic()
        for number, first in after.items():
            with self._lock:
                self._follow()
                offsets = self._index.offsets(tags, number, first, self._index.reached(number).until)
            for span in _spans(offsets):
                wanted = pa.array(span, pa.int64())
                for batch in self._read(topic, {number: span[0]}, {number: span[-1] + 1}, True):
                    found = batch.filter(pc.is_in(batch.column("_offset"), wanted))
                    if len(found):
                        yield found if meta else found.select(topic.read_schema.names)

    def close(self) -> None:
        """Release the connections, and the index, which is private."""
        with self._lock:
            self._index.close()
            self._writer.close()

    def _attempt(self, proposals: Sequence[Proposal], rows: Outgoing) -> list[int | Conflict]:
        with self._lock:
            self._make_sure()
            ends = {number: self._index.reached(number).until for number in range(self._partitions)}
            self._in_flight = True
            made = expected_version.decide(self._index, proposals, ends, rows.topic.name)
            records = self._records(proposals, made, rows)
        if len(records.batch):
            counts = np.bincount(records.partition, minlength=self._partitions)
            self._writer.expected = {n: ends[n] + int(count) for n, count in enumerate(counts) if count}
            # Also if it fails: it may be stored, and what comes next would be taken for its repetition.
            self._sequence += len(records.batch)
            self._writer.append(records, [])
            with self._lock:
                self._keep(self._writer.expected)
        return made

    def _records(
        self, proposals: Sequence[Proposal], made: Sequence[int | Conflict], rows: Outgoing
    ) -> OutgoingBatch:
        """Return the rows of the proposals that were accepted."""
        accepted = [not isinstance(each, Conflict) for each in made]
        keep = np.repeat(accepted, [len(each.tags) for each in proposals])
        sequence = np.arange(self._sequence, self._sequence + int(keep.sum()), dtype=np.int64)
        extras = {} if rows.headers is None else {"_headers": rows.headers.filter(pa.array(keep))}
        return OutgoingBatch(rows.batch.filter(pa.array(keep)), sequence, rows.topic, rows.sent, extras)

    def _keep(self, written: Mapping[int, int]) -> None:
        """Take what was just committed for good, with the broker's marker behind it."""
        ends = self._cluster.ends(self._writer.topic().name, written)
        for number, expected in written.items():
            # Behind the records there is the marker of the transaction; anything more is read.
            exact = ends[number] == expected + 1
            self._index.reach(number, _until(ends[number] if exact else expected))
            self._index.flush(number)
            self._is_sure = self._is_sure and exact

    def _follow(self) -> None:
        """Learn what a newer writer has appended, so that one that was overtaken reads no old state."""
        if self._in_flight:
            return  # who reads meanwhile sees what was there before
        topic = self._writer.topic()
        if self._is_sure and self._cluster.ends(topic.name, range(self._partitions)) == self.ends():
            return
        self._catch_up()

    def _make_sure(self) -> None:
        if not self._is_sure:
            self._catch_up()

    def _catch_up(self) -> None:
        """Read what has been committed since; what was expected to be is forgotten."""
        topic = self._writer.topic()
        numbers = range(self._partitions)
        for number in numbers:
            self._index.forget(number)
        starts = {number: self._index.reached(number).until for number in numbers}
        ends = self._settled_ends(topic, starts)
        for number, end in ends.items():
            if end < starts[number]:
                raise HeadwaterError(
                    f'topic "{topic.name}" has lost its end in partition {number}',
                    detail=f"it ends at {end}, and records up to {starts[number]} were committed",
                    hint="open it again: what is left counts",
                )
        for batch in self._read(topic, starts, ends, True):
            self._add(batch, topic)
        for number, end in ends.items():
            self._index.reach(number, _until(end))
            self._index.flush(number)
        self._is_sure = True

    def _settled_ends(self, topic: Topic, starts: Mapping[int, int]) -> dict[int, int]:
        """Return where partitions end; a broker that has just started may know of less than it has."""
        deadline = time.monotonic() + SETTLE_SECONDS
        while True:
            ends = self._cluster.ends(topic.name, range(self._partitions))
            if all(end >= starts[number] for number, end in ends.items()) or time.monotonic() > deadline:
                return ends
            time.sleep(0.1)

    def _add(self, batch: pa.RecordBatch, topic: Topic) -> None:
        columns = [batch.column(name) for name in topic.key]
        number = batch.column("_partition")[0].as_py()
        if topic.partitions > 1 and (keys.partitions(columns, topic.partitions) != number).any():
            raise expected_version.moved(topic)
        tags = tags_of_records(columns, batch.column("_headers"))
        for offset, each in zip(batch.column("_offset").to_pylist(), tags, strict=True):
            self._index.add(number, offset, [each])


def _until(end: int) -> Indexed:
    return Indexed(end, Place(0, 0), b"")


def _spans(offsets: list[int]) -> Iterator[list[int]]:
    """Cut offsets where the next one is far away."""
    cuts = [at for at, (one, other) in enumerate(pairwise(offsets), 1) if other - one > _SPAN]
    for start, end in pairwise([0, *cuts, len(offsets)]):
        if start < end:
            yield offsets[start:end]
