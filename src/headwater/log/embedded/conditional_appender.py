"""Conditional appends to the embedded log: by many threads and many processes at once.

Under the locks of the partitions concerned, what others have appended is taken into the index, the
conditions are checked, and what is accepted is written; then, without them, it is synced and published. A
record that makes others be refused is published before they are told, for they may act upon it; and versions
are told of published records alone.

Invariant: what is in the index in memory is published, or lies before a frame that this process has written:
so nobody can take it back but this process, which then forgets it.
"""

from __future__ import annotations

import logging
import sqlite3
import struct
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from headwater.errors import Conflict, HeadwaterError, LogUnavailable
from headwater.log import expected_version
from headwater.log.embedded.appender import EmbeddedAppender, FramePart, cut, schema_version, storage_errors
from headwater.log.embedded.partition import frame, head, reader
from headwater.log.embedded.partition.frame import Draft, Flag, Kind
from headwater.log.embedded.partition.frame_files import FrameFiles
from headwater.log.embedded.partition.writer import Partition
from headwater.log.expected_version import Outgoing, Proposal
from headwater.log.tag_index import FAR, FLUSH_POSTINGS, Indexed, Place, TagIndex
from headwater.log.tags import tags_of_records
from headwater.sqlite_wal import discard_damaged
from headwater.topic import Topic
from headwater.values import keys

INDEX = "tags.db"
"""The file of the index, in the directory of its topic."""
_ANCHOR = struct.Struct("<qqqqI16s")
_log = logging.getLogger("headwater")


class _Written(NamedTuple):
    """What was written to a partition, in one go."""

    partition: Partition
    before: int
    """Where the file ended."""


class EmbeddedConditionalAppender:
    """Checks and appends proposals for one topic; ``append`` by one thread at a time, the rest by any."""

    def __init__(
        self, appender: EmbeddedAppender, directory: Path, check: Callable[[Topic], None], fsync: bool
    ):
        self.id = appender.id
        self._appender, self._directory, self._check, self._fsync = appender, directory, check, fsync
        self._sequence = appender.last_sequence + 1
        self._lock = threading.RLock()
        self._files: dict[int, FrameFiles] = {}
        self._partitions = appender.topic().partitions
        self._index: TagIndex | None = None

    def topic(self) -> Topic:
        """Return the topic as it is declared now; refuse one whose records would not all stay."""
        topic = self._appender.topic()
        self._check(topic)
        if topic.partitions != self._partitions:
            raise expected_version.moved(topic)
        return topic

    def append(self, proposals: Sequence[Proposal], rows: Outgoing) -> list[int | Conflict]:
        """Append what is accepted, durably; return the first offset of each, or its conflict."""
        numbers = sorted(set().union(*(each.partitions for each in proposals)))
        with storage_errors(), self._forgetting(numbers):
            involved = {number: self._appender.partition(number) for number in numbers}
            with ExitStack() as locks:
                for partition in involved.values():
                    locks.enter_context(partition.locked())
                    partition.refresh()
                    self._appender.fence(partition)
                    partition.check(self.id, self._appender.epoch)
                with self._lock:
                    made = self._decide(involved, proposals, rows)
                    written = self._write(involved, proposals, made, rows)
                # Also where others have yet to publish: what is indexed must not be taken back.
                unsure = [each for each in involved.values() if each.tail.end > each.published().end]
            self._appender.commit(unsure, {each.partition: each.before for each in written.values()})
            with self._lock:
                for number in written:
                    self._flush(number)
        return made

    def ends(self) -> dict[int, int]:
        """Return where each partition ends, of what is durable."""
        with storage_errors():
            return {n: self._appender.partition(n).published().end for n in range(self._partitions)}

    def newest(self, tags: Sequence[bytes], after: Mapping[int, int]) -> dict[int, int]:
        """Return the newest offset with all the tags, in each of these partitions that has one."""
        with self._lock, storage_errors(), self._forgetting(after):
            found = {
                number: self._indexed().newest(tags, number, first, self._follow(number))
                for number, first in after.items()
            }
        return {number: offset for number, offset in found.items() if offset is not None}

    def read(self, tags: Sequence[bytes], after: Mapping[int, int], meta: bool) -> Iterator[pa.RecordBatch]:
        """Yield the records with all the tags, from an offset on in each of these partitions."""
        topic = self.topic()
        for number, first in after.items():
            with self._lock, storage_errors(), self._forgetting([number]):
                offsets = self._indexed().offsets(tags, number, first, self._follow(number))
                places = [(*self._indexed().frame(number, offset), offset) for offset in offsets]
                found = [
                    self._records(topic, number, base, place, [each[2] for each in same], meta)
                    for (base, place), same in groupby(places, key=lambda each: each[:2])
                ]
            yield from found

    def close(self) -> None:
        """Store what is in the index, and release the files."""
        with self._lock:
            if self._index is not None:
                with suppress(HeadwaterError, OSError):  # it is derived: what is not stored is learnt again
                    for number in range(self._partitions):
                        self._follow(number)
                        self._flush(number, least=1)
                if self._index is not None:
                    self._index.close()
                    self._index = None
            for each in self._files.values():
                each.close()
            self._files.clear()
        self._appender.close()

    # Appending

    def _decide(
        self, involved: Mapping[int, Partition], proposals: Sequence[Proposal], rows: Outgoing
    ) -> list[int | Conflict]:
        for number, partition in involved.items():
            self._catch_up(number, partition.tail.segment.base, partition.tail.at)
        ends = {number: partition.tail.end for number, partition in involved.items()}
        return expected_version.decide(self._indexed(), proposals, ends, rows.topic.name)

    def _write(
        self,
        involved: Mapping[int, Partition],
        proposals: Sequence[Proposal],
        made: Sequence[int | Conflict],
        rows: Outgoing,
    ) -> dict[int, _Written]:
        """Write the rows of the proposals that were accepted: to each partition, or to none."""
        written: dict[int, _Written] = {}
        try:
            for number, chosen in _accepted(proposals, made).items():
                partition, base = involved[number], involved[number].tail.end
                parts = self._parts(rows, chosen)
                drafts = [part.draft() for part in parts]
                before = partition.write(drafts, self.id, self._appender.epoch)
                written[number] = _Written(partition, before)
                self._note_frames(number, base, before, drafts)
                self._indexed().reach(number, _indexed_to(partition))
        except OSError:
            for each in written.values():
                each.partition.undo(each.before)
            raise
        return written

    def _parts(self, rows: Outgoing, chosen: list[int]) -> list[FramePart]:
        batch = rows.batch
        if rows.headers is not None:
            batch = batch.append_column(frame.COLUMNS[Flag.HEADERS], rows.headers)
        if len(chosen) < len(batch):
            batch = batch.take(pa.array(chosen))
        sequence = np.arange(self._sequence, self._sequence + len(chosen), dtype=np.int64)
        self._sequence += len(chosen)
        version = schema_version(rows.batch.schema, rows.topic)
        event_time, compression = rows.topic.event_time, self._appender.compression
        return list(cut(FramePart(batch, sequence, version, event_time, rows.sent, compression)))

    def _note_frames(self, number: int, base: int, at: int, drafts: Sequence[Draft]) -> None:
        """Note in the index where what was just written lies, as if it had been read."""
        segment = self._appender.partition(number).tail.segment.base
        for each in drafts:
            self._indexed().add_frame(number, base, Place(segment, at))
            base, at = base + each.rows, at + frame.frame_size(self.id, len(each.payload))

    @contextmanager
    def _forgetting(self, numbers: Sequence[int] | Mapping[int, int]) -> Iterator[None]:
        """After a failure, learn again from the log what it holds; a damaged index is made anew."""
        try:
            yield
        except BaseException as error:
            with self._lock:
                if isinstance(error, sqlite3.DatabaseError):
                    self._drop_index(error)
                if self._index is not None:
                    for number in numbers:
                        self._index.forget(number)
            if isinstance(error, sqlite3.DatabaseError):
                raise LogUnavailable(
                    f'index of topic "{self._directory.name}" cannot be used',
                    detail=f'"{self._directory / INDEX}": {error}',
                    hint="try again; it is derived from the records, so the file may be removed",
                ) from error
            raise

    def _flush(self, number: int, least: int = FLUSH_POSTINGS) -> None:
        """Store what is in memory if it is much; what was appended stands, whether or not that succeeds."""
        try:
            if self._indexed().unstored(number) >= least:
                self._indexed().flush(number, self._anchor(number))
        except sqlite3.DatabaseError as error:
            _log.warning('index of topic "%s" was not stored: %s', self._directory.name, error)
            self._drop_index(error)

    def _anchor(self, number: int) -> bytes:
        """Return what the last frame that is indexed is known by."""
        place = self._indexed().last_frame(number)
        header = None if place is None else self._frame_files(number).header(*place)
        if place is None or header is None:
            return b""
        return _ANCHOR.pack(*place, header.base, header.received, header.payload_checksum, head.BOOT)

    def _drop_index(self, error: sqlite3.DatabaseError) -> None:
        """Close an index that has failed; one that is damaged is made anew when it is needed."""
        if self._index is not None:
            with suppress(sqlite3.Error):
                self._index.close()
            self._index = None
        discard_damaged(self._directory / INDEX, error)

    # The index

    def _indexed(self) -> TagIndex:
        if self._index is None:
            index = TagIndex(self._directory / INDEX)
            if index.setting("partitions", str(self._partitions)) != str(self._partitions):
                index.close()
                raise expected_version.moved(self._appender.topic())
            for number in range(self._partitions):
                if not self._is_of_this_log(index.reached(number), number):
                    index.restart(number)
            self._index = index
        return self._index

    def _is_of_this_log(self, indexed: Indexed, number: int) -> bool:
        """Tell whether the last frame that was indexed is there, and synced if a power loss came between."""
        if not indexed.anchor:
            return indexed.until == 0
        segment, at, *identity, booted = _ANCHOR.unpack(indexed.anchor)
        header = self._frame_files(number).header(segment, at)
        if header is None or [header.base, header.received, header.payload_checksum] != identity:
            return False
        return self._fsync or booted == head.BOOT

    def _follow(self, number: int) -> int:
        """Index what has been published, and return where that ends."""
        published = self._appender.partition(number).published()
        if published.end > self._indexed().reached(number).until:
            self._catch_up(number, published.segment, published.size)
        return published.end

    def _catch_up(self, number: int, segment: int, at: int) -> None:
        """Index the frames up to a byte of a segment."""
        index = self._indexed()
        start = index.reached(number).place
        if start == (segment, at):
            return
        topic = self._appender.topic()
        for each in self._frame_files(number).between(start.segment, start.at, segment, at):
            if each.header.rows and each.header.kind == Kind.DATA:
                batch = frame.decode(each.header, each.payload, topic.schemas[each.header.schema_version])
                index.add_frame(number, each.header.base, Place(each.segment, each.at))
                index.add(number, each.header.base, self._tags(batch, topic, number))
            end = Place(each.segment, each.at + each.header.size())
            index.reach(number, Indexed(each.header.last + 1, end, b""))

    def _tags(self, batch: pa.RecordBatch, topic: Topic, number: int) -> list[list[bytes]]:
        columns = [batch.column(name) for name in topic.key]
        if topic.partitions > 1 and (keys.partitions(columns, topic.partitions) != number).any():
            raise expected_version.moved(topic)
        headers = batch.column("_headers") if "_headers" in batch.schema.names else None
        return tags_of_records(columns, headers)

    def _records(
        self, topic: Topic, number: int, base: int, place: Place, offsets: list[int], meta: bool
    ) -> pa.RecordBatch:
        found = self._frame_files(number).at(place.segment, place.at, base)
        batch = reader.records([found], topic, number, (0, FAR), meta)
        return (
            batch if len(offsets) == len(batch) else batch.take(pa.array([each - base for each in offsets]))
        )

    def _frame_files(self, number: int) -> FrameFiles:
        if number not in self._files:
            self._files[number] = FrameFiles(self._directory / str(number))
        return self._files[number]


def _indexed_to(partition: Partition) -> Indexed:
    tail = partition.tail
    return Indexed(tail.end, Place(tail.segment.base, tail.at), b"")


def _accepted(proposals: Sequence[Proposal], made: Sequence[int | Conflict]) -> dict[int, list[int]]:
    """Return the rows of each partition that are to be written, in their order."""
    chosen: dict[int, list[int]] = {}
    first = 0
    for each, outcome in zip(proposals, made, strict=True):
        if not isinstance(outcome, Conflict):
            chosen.setdefault(each.partition, []).extend(range(first, first + len(each.tags)))
        first += len(each.tags)
    return chosen
