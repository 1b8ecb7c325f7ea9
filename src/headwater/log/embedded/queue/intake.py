"""Takes records of the log in, from where the queue's cursors are.

Without order, priorities and times, as many as are asked for, and they are delivered at once. With them,
records get rows first: all that are redriven, for they come before others of their keys; then all that wait
where priorities decide, else until enough can be delivered.
Invariant: cursor and rows change in one transaction; records that retention has removed are counted; of one
key in an ordered queue the older record has its row first, also where partitions were added in between.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from headwater.errors import OffsetLost
from headwater.log.embedded.catalog import StoredTopic
from headwater.log.embedded.queue import delivery
from headwater.log.embedded.queue.delivery import Holder, NewMessage, TakenMessage
from headwater.log.embedded.queue.records import PartitionRecords, RecordRow, record_rows
from headwater.log.embedded.queue.sources import QueueSources
from headwater.log.embedded.queue.store import RETRY, TOPIC, set_cursor
from headwater.log.embedded.queue.timing import timings
from headwater.log.queue_settings import QueueSettings
from headwater.values.keys import key_bytes

CHUNK = 5000
MOST_BLOCKED = 100_000
"""Messages behind others of their keys that are taken in, in search of one that is not."""


class HeldRecords(NamedTuple):
    """Records that were taken in and given to a consumer."""

    messages: list[TakenMessage]
    rows: list[RecordRow]


class _Place(NamedTuple):
    """Where a partition of a source is read next."""

    source: int
    stored: StoredTopic
    number: int
    cursor: int


class Intake:
    """Reads the topic of a queue, and what its group tries again."""

    def __init__(self, sources: QueueSources, settings: QueueSettings):
        self._sources, self._settings = sources, settings
        self._records: dict[tuple[str, int], PartitionRecords] = {}
        self._turn = 0
        self.lost: OffsetLost | None = None
        """The last loss that was found, until somebody was told."""

    def take(self, db: sqlite3.Connection, limit: int, holder: Holder) -> list[HeldRecords]:
        """Take in as many records as are asked for, and give them to a consumer."""
        found: list[HeldRecords] = []
        for place in self._places(db, [RETRY, TOPIC]):
            while limit and (held := self._take_from(db, place, limit, holder)) is not None:
                found.append(held)
                limit -= len(held.rows)
                place = place._replace(cursor=held.rows[-1].offset + 1)
        return found

    def _take_from(
        self, db: sqlite3.Connection, place: _Place, limit: int, holder: Holder
    ) -> HeldRecords | None:
        """Take in records of one partition, as many as were decoded at once."""
        batch = self._following(db, place, limit)
        if batch is None:
            return None
        rows = record_rows(batch, place.stored.topic.schema.names)
        where = (place.source, place.number)
        numbers = delivery.insert_held(db, where, [row[:2] for row in rows], holder)
        set_cursor(db, place.source, place.stored.id, place.number, rows[-1].offset + 1)
        taken = [
            TakenMessage(seq, *where, row.offset, 0, None) for seq, row in zip(numbers, rows, strict=True)
        ]
        return HeldRecords(taken, rows)

    def index(self, db: sqlite3.Connection, wanted: int, now: int) -> bool:
        """Take in a part of what waits; return whether more must be taken in before any is delivered."""
        if self._index_source(db, RETRY, now):
            return True
        if self._settings.priority is None and delivery.ready_count(db, wanted) >= wanted:
            return False
        if self._settings.ordered and _blocked(db) >= MOST_BLOCKED:
            return False
        return self._index_source(db, TOPIC, now)

    def _index_source(self, db: sqlite3.Connection, source: int, now: int) -> bool:
        """Take in the next records of each partition of a source; return whether there were any.

        In order, what was appended before partitions were added comes before all that came after.
        """
        known = self._sources.growths() if source == TOPIC and self._settings.ordered else []
        cursors = {place.number: place.cursor for place in self._places(db, [source])} if known else {}
        ends = [each.ends for each in known if each.unread(cursors)]
        return any(self._index_part(db, source, now, each) for each in (*ends, None))

    def _index_part(self, db: sqlite3.Connection, source: int, now: int, ends: Sequence[int] | None) -> bool:
        """Take in the next records that lie before ends, if some are given; tell whether there were any."""
        messages: list[NewMessage] = []
        lost, moved = self.lost, False
        for place in self._places(db, [source]):
            if ends is None or place.number < len(ends):
                batch = self._following(db, place, CHUNK)
                part = batch if ends is None or batch is None else _before(batch, ends[place.number])
                if part is not None:
                    moved = _move(db, place, part, ends) or moved
                    messages += self._new_messages(part, place)
        if self._settings.ordered:  # what was placed by the old partitions and came late is the older one
            messages.sort(key=attrgetter("received"))
        delivery.insert(db, messages, now)
        return moved or self.lost is not lost

    def at(self, messages: Sequence[TakenMessage]) -> dict[int, pa.RecordBatch]:
        """Return the records of messages, by the number of the message; those that are gone are left out."""
        sources, found = self._sources.stored(), dict[int, pa.RecordBatch]()
        for source, number in {(each.source, each.partition) for each in messages}:
            ours = {
                each.offset: each.seq
                for each in messages
                if (each.source, each.partition) == (source, number)
            }
            if source in sources:
                records = self._partition(sources[source], number).at(ours)
                found |= {ours[offset]: batch for offset, batch in records.items()}
        return found

    def close(self) -> None:
        """Release the files."""
        for each in self._records.values():
            each.close()
        self._records = {}

    def _places(self, db: sqlite3.Connection, order: Sequence[int]) -> Iterator[_Place]:
        """Yield the partitions of sources with their cursors, the topic's in turn."""
        query = "SELECT source, topic, partition, next FROM cursors"
        cursors = {row[:3]: row[3] for row in db.execute(query).fetchall()}
        sources = self._sources.stored()
        for source, stored in ((each, sources[each]) for each in order if each in sources):
            count = stored.topic.partitions
            self._turn += source == TOPIC
            for step in range(count):
                number = (self._turn + step) % count
                yield _Place(source, stored, number, cursors.get((source, stored.id, number), 0))

    def _following(self, db: sqlite3.Connection, place: _Place, limit: int) -> pa.RecordBatch | None:
        records = self._partition(place.stored, place.number)
        try:
            return records.following(place.cursor, limit)
        except OffsetLost as error:
            if error.earliest <= place.cursor:
                raise
            delivery.count_lost(db, error.earliest - place.cursor)
            set_cursor(db, place.source, place.stored.id, place.number, error.earliest)
            records.close()
            self.lost = error
            return None

    def _partition(self, stored: StoredTopic, number: int) -> PartitionRecords:
        found = self._records.get((stored.id, number))
        if found is None:
            found = self._records[stored.id, number] = PartitionRecords(
                lambda offset: self._sources.reader(stored, number, offset), lambda: self._columns(stored)
            )
        return found

    def _columns(self, stored: StoredTopic) -> Sequence[str]:
        now = next((each for each in self._sources.stored().values() if each.id == stored.id), stored)
        names: list[str] = now.topic.schema.names
        return names

    def _new_messages(self, batch: pa.RecordBatch, place: _Place) -> list[NewMessage]:
        where = (place.source, place.number)
        keys: list[bytes | None] = [None] * len(batch)
        if self._settings.ordered:
            keys = key_bytes([batch.column(name) for name in self._key_columns]).to_pylist()
        rows = zip(
            batch.column("_offset").to_pylist(),
            batch.column("_received").view(pa.int64()).to_pylist(),
            timings(batch, self._settings),
            keys,
            strict=True,
        )
        return [
            NewMessage(*where, offset, received, at.priority, at.due, at.expires, key, at.problem)
            for offset, received, at, key in rows
        ]

    @property
    def _key_columns(self) -> Sequence[str]:
        return self._sources.stored()[TOPIC].topic.key


def _before(batch: pa.RecordBatch, end: int) -> pa.RecordBatch:
    """Return the records before an offset."""
    return batch.slice(0, int(np.searchsorted(batch.column("_offset").to_numpy(), end)))


def _move(db: sqlite3.Connection, place: _Place, batch: pa.RecordBatch, ends: Sequence[int] | None) -> bool:
    """Move the cursor behind records, or where there are none to the end; tell whether it was elsewhere."""
    if len(batch):
        to = batch.column("_offset")[-1].as_py() + 1
    else:
        to = place.cursor if ends is None else max(place.cursor, ends[place.number])
    set_cursor(db, place.source, place.stored.id, place.number, to)
    return bool(to > place.cursor)


def _blocked(db: sqlite3.Connection) -> int:
    query = "SELECT COUNT(*) FROM messages WHERE key IS NOT NULL AND state = 'blocked'"
    return int(db.execute(query).fetchone()[0])
