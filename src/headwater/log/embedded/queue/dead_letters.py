"""Where a message becomes a dead letter, and a dead letter a message again.

A message that is dying gets a number first, durably; under that number it is appended to the topic of dead
letters; then it leaves the queue. Whoever finds numbered messages after a crash appends them again, and the
log leaves out what it has. Invariant: a message leaves the queue only when its dead letter is durable, and
there is one of it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import groupby
from typing import NamedTuple

import pyarrow as pa

from headwater.errors import Fenced, HeadwaterError
from headwater.log.dead_letter_topic import ORIGIN, DeadLetterTopic, Death
from headwater.log.embedded.queue import delivery
from headwater.log.embedded.queue.delivery import TakenMessage
from headwater.log.embedded.queue.store import DEAD, TOPIC, QueueStore, set_cursor
from headwater.log.interface import Log
from headwater.log.producer import Producer
from headwater.log.queue_report import DeadMessage

AT_ONCE = 1000


class _Dying(NamedTuple):
    """A message that has its number, with its record."""

    number: int
    message: TakenMessage
    death: Death
    record: pa.RecordBatch


class DeadLettering:
    """Writes dead letters of one queue, and brings them back."""

    def __init__(
        self,
        log: Log,
        store: QueueStore,
        side: DeadLetterTopic,
        records: Callable[[Sequence[TakenMessage]], dict[int, pa.RecordBatch]],
    ):
        self._log, self._store, self._side, self._records = log, store, side, records
        self._topic = ""
        self._producer: Producer | None = None

    def move_to_dead_letters(self, now: int) -> bool:
        """Write all that is dying as dead letters; return whether messages behind them can be had now."""
        with self._store.transaction(durable=True) as db:
            _number(db)
        unblocked = False
        while True:
            with self._store.transaction() as db:
                rows = _numbered(db)
                if not rows:
                    return unblocked
                unblocked = self._move_to_dead_letters(db, rows, now) or unblocked

    def letters(self) -> Iterator[DeadMessage]:
        """Yield the dead letters that were neither redriven nor purged."""
        dead = self._side.existing(self._side.name)
        if dead is not None:
            yield from self._side.read(self._store.cursor_of(DEAD, dead.id))

    def count(self) -> int:
        """Return how many there are."""
        return count_letters(self._log, self._store, self._side)

    def redrive(self) -> int:
        """Append all dead letters to what is tried again; return how many."""
        return self._pass_over(self._append_retries)

    def purge(self) -> int:
        """Forget all dead letters; return how many."""
        return self._pass_over(None)

    def close(self) -> None:
        """Release the producer."""
        producer, self._producer = self._producer, None
        if producer is not None:
            with suppress(HeadwaterError):  # one that was fenced says so; it has nothing left to do
                producer.close()

    def _pass_over(self, before: Callable[[str, int, int], None] | None) -> int:
        """Move the cursor of dead letters to their end; what is done before can be done again."""
        with self._store.transaction() as db:
            dead = self._side.existing(self._side.name)
            if dead is None:
                return 0
            first = self._store.cursor_of(DEAD, dead.id)
            end = self._log.resolve(dead.name, "latest").offsets[0]
            if before is not None and end > first:
                before(dead.id, first, end)
            set_cursor(db, DEAD, dead.id, 0, end)
        return end - first

    def _append_retries(self, dead: str, first: int, end: int) -> None:
        """Append dead letters under their offsets, so that those that are there already are left out."""
        self._side.prepared(self._side.retry)
        with self._log.producer(self._side.retry, id=f"redrive-{dead}") as producer:
            for batch in self._log.read(self._side.name, 0, first, end, meta=True):
                table = self._side.retries(pa.Table.from_batches([batch]))
                producer.send_changes(table, sequence=batch.column("_offset")[0].as_py())

    def _move_to_dead_letters(
        self, db: sqlite3.Connection, rows: Sequence[tuple[int, str, TakenMessage]], now: int
    ) -> bool:
        messages = [message for _, _, message in rows]
        found = self._records(messages)
        lost = [each for each in messages if each.seq not in found]
        self._append(
            [
                _Dying(number, each, self._death(each, reason, found[each.seq]), found[each.seq])
                for number, reason, each in rows
                if each.seq in found
            ]
        )
        delivery.lose(db, lost, now)
        there = [each for each in messages if each.seq in found]
        db.executemany("DELETE FROM messages WHERE seq = ?", [(each.seq,) for each in there])
        unblocked = [delivery.unblock(db, each.key, now) for each in there if each.key is not None]
        return any(unblocked)

    def _death(self, message: TakenMessage, reason: str, record: pa.RecordBatch) -> Death:
        if message.source == TOPIC:
            origin = f"{self._side.topic}:{message.partition}:{message.offset}"
        else:  # it was dead before: it comes from where it came from then
            origin = dict(record.column("_headers")[0].as_py() or ()).get(ORIGIN, b"").decode()
        return Death(reason, message.deliveries, origin, redriven=message.source != TOPIC)

    def _append(self, dying: Sequence[_Dying]) -> None:
        """Append dead letters under their numbers; another process may have been at it meanwhile."""
        for _, run in groupby(enumerate(dying), key=lambda each: each[1].number - each[0]):
            part = [each for _, each in run]
            try:
                self._append_run(part)
            except Fenced:
                self.close()
                self._append_run(part)

    def _append_run(self, dying: Sequence[_Dying]) -> None:
        topic = self._side.prepared(self._side.name)
        if self._producer is None or self._topic != topic.id:
            self.close()
            self._topic = topic.id
            self._producer = self._log.producer(self._side.name, id=f"queue-{self._queue_id()}")
        records = pa.concat_tables([pa.Table.from_batches([each.record]) for each in dying])
        letters = self._side.letters(records, [each.death for each in dying])
        self._producer.append_changes([letters], sequence=dying[0].number)

    def _queue_id(self) -> str:
        return str(self._store.rows("SELECT id FROM queue")[0][0])


def count_letters(log: Log, store: QueueStore, side: DeadLetterTopic) -> int:
    """Return how many dead letters a queue has that were neither redriven nor purged."""
    dead = side.existing(side.name)
    if dead is None:
        return 0
    end = log.resolve(dead.name, "latest").offsets[0]
    return max(0, end - store.cursor_of(DEAD, dead.id))


def _number(db: sqlite3.Connection) -> None:
    """Give what is dying its numbers."""
    query = "SELECT seq FROM messages WHERE state = 'dying' AND death IS NULL ORDER BY seq"
    dying = [row[0] for row in db.execute(query).fetchall()]
    if dying:
        first = db.execute("SELECT deaths FROM queue").fetchone()[0]
        db.executemany("UPDATE messages SET death = ? WHERE seq = ?", list(enumerate(dying, first)))
        db.execute("UPDATE queue SET deaths = ?", (first + len(dying),))


def _numbered(db: sqlite3.Connection) -> list[tuple[int, str, TakenMessage]]:
    """Return messages that have their numbers, in that order: number, reason, message."""
    query = (
        "SELECT death, reason, seq, source, partition, offset, deliveries, key FROM messages "
        "WHERE state = 'dying' AND death IS NOT NULL ORDER BY death LIMIT ?"
    )
    rows = db.execute(query, (AT_ONCE,)).fetchall()
    return [(row[0], row[1] or "", TakenMessage(*row[2:])) for row in rows]
