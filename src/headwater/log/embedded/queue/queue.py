"""A queue over a topic of the embedded log.

Invariant: what a consumer holds is its own until it acknowledges it, gives it back, dies, or its time is
over; every change of that is one transaction.
"""

from __future__ import annotations

import logging
import os
import secrets
import time
from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pyarrow as pa

from headwater import durations
from headwater.durations import MICROSECOND
from headwater.errors import HeadwaterError, OffsetLost, UsageError
from headwater.log.dead_letter_topic import redriven_headers
from headwater.log.embedded.queue import delivery, figures
from headwater.log.embedded.queue.consumers import ConsumerLock
from headwater.log.embedded.queue.dead_letters import DeadLettering
from headwater.log.embedded.queue.delivery import Handle, Holder, TakenMessage
from headwater.log.embedded.queue.intake import HeldRecords, Intake
from headwater.log.embedded.queue.records import RecordRow, record_rows
from headwater.log.embedded.queue.sources import QueueSources
from headwater.log.embedded.queue.store import TOPIC, QueueStore
from headwater.log.embedded.wakeup import Wakeup
from headwater.log.process import check_process
from headwater.log.queue import Message, Queue, check_kept, fenced, message_id
from headwater.log.queue_report import DeadMessage, QueueStatus
from headwater.log.queue_settings import QueueSettings

CHECK_SECONDS = 0.5
"""How often a consumer looks whether others have died, where nothing tells it."""
_log = logging.getLogger("headwater")


@dataclass(frozen=True)
class QueueParts:
    """What a queue is made of."""

    sources: QueueSources
    store: QueueStore
    intake: Intake
    dead_letters: DeadLettering
    lock: ConsumerLock


class EmbeddedQueue(Queue):
    """One consumer of a queue."""

    delays = True

    def __init__(
        self,
        topic: str,
        group: str,
        settings: QueueSettings,
        parts: QueueParts,
        clock: Callable[[], int] = durations.now,
    ):
        self.topic, self.group, self.settings = topic, group, settings
        self._parts, self._clock = parts, clock
        self._store, self._intake, self._lock = parts.store, parts.intake, parts.lock
        self._process = os.getpid()
        self._checked = 0.0
        self._unwritten = ""
        """Why dead letters could not be written: it is logged once."""
        self._closed = False

    # What a consumer calls

    def status(self) -> QueueStatus:
        """Return how much waits, is in flight, and is dead."""
        self._check_open()
        name, dead = (self.topic, self.group), self._parts.dead_letters.count()
        return figures.status(self._store, self._parts.sources, name, dead, self._clock())

    def dead(self) -> Iterator[DeadMessage]:
        """Yield the dead letters that were neither redriven nor purged."""
        self._check_open()
        return self._parts.dead_letters.letters()

    def redrive(self) -> int:
        """Deliver all dead letters to this group again."""
        self._check_open()
        count = self._parts.dead_letters.redrive()
        self._lock.notify()
        return count

    def purge(self, *, dead: bool = False) -> int:
        """Forget what waits, or the dead letters."""
        self._check_open()
        if dead:
            return self._parts.dead_letters.purge()
        return figures.purge(self._store, self._parts.sources)

    def close(self) -> None:
        """Give back what was received and not acknowledged."""
        if self._closed:
            return
        self._closed = True
        if os.getpid() != self._process:  # a forked child's end is not the consumer's
            return
        with self._store.transaction() as db:
            left = delivery.release_consumer(db, self._lock.id, self.settings.max_deliveries)
        self._lock.close()
        if left:
            self._lock.notify()
        self._parts.dead_letters.close()
        self._intake.close()
        self._store.close()

    # What the contract leaves to a backend

    def _take(self, limit: int, visible_after: timedelta, timeout: float | None) -> list[Message]:
        deadline = None if timeout is None else time.monotonic() + timeout
        messages = self._attempt(limit, visible_after)
        if messages or timeout == 0:
            return messages
        with closing(self._wakeup()) as wakeup:
            while not (messages := self._attempt(limit, visible_after)):
                left = CHECK_SECONDS if deadline is None else deadline - time.monotonic()
                if left <= 0:
                    break
                if wakeup.wait(min(left, CHECK_SECONDS, self._seconds_to_next())):
                    self._checked = 0.0  # a consumer may have gone
        return messages

    def _acknowledge(self, messages: Sequence[Message]) -> list[Message]:
        self._check_open()
        handles = [message.handle for message in messages]
        with self._store.transaction() as db:
            stale, unblocked = delivery.acknowledge(db, handles, self._clock())
        if unblocked:
            self._lock.notify()
        return [messages[place] for place in stale]

    def _settle(self, done: Container[str]) -> int:
        self._check_open()
        with self._store.transaction() as db:
            left = [
                message
                for consumer, message in delivery.delivered(db)
                if self._id(message) in done and not (consumer and self._lock.lives(consumer))
            ]
            unblocked = delivery.remove(db, left, self._clock())
        if unblocked:
            self._lock.notify()
        return len(left)

    def _give_back(self, message: Message, delay: timedelta, reason: str | None) -> None:
        self._check_open()
        if message.deliveries >= self.settings.max_deliveries:
            self._reject(message, reason or delivery.UNACKNOWLEDGED)
            return
        visible = self._clock() + delay // MICROSECOND if delay else None
        with self._store.transaction() as db:
            held = delivery.postpone(db, message.handle, visible, reason)
        if not held:
            raise fenced([message])
        self._lock.notify()

    def _undeliver(self, messages: Sequence[Message]) -> None:
        self._check_open()
        with self._store.transaction() as db:
            delivery.undeliver(db, [message.handle for message in messages])
        self._lock.notify()

    def _extend(self, message: Message, length: timedelta) -> None:
        self._check_open()
        with self._store.transaction() as db:
            held = delivery.extend(db, message.handle, self._clock() + length // MICROSECOND)
        if not held:
            raise fenced([message])

    def _reject(self, message: Message, reason: str) -> None:
        self._check_open()
        with self._store.transaction() as db:
            held = delivery.condemn(db, message.handle, reason)
        if not held:
            raise fenced([message])
        self._move_to_dead_letters()

    # Inside

    def _attempt(self, limit: int, visible_after: timedelta) -> list[Message]:
        """Deliver what can be delivered now."""
        self._check_open()
        check_kept(self._parts.sources.topic().topic)
        self._raise_lost()
        self._look_after_others()
        self._revive()
        messages: list[Message] = []
        try:
            while self._deliver(messages, limit, visible_after) and len(messages) < limit:
                if not self._set_aside():  # the next message of a key may have waited for it
                    self._deliver(messages, limit, visible_after)
                    break
        except BaseException:
            self._undeliver(messages)  # nobody would get them
            raise
        if not messages:
            self._raise_lost()
        return messages

    def _revive(self) -> None:
        """Let what was delayed or held until now be had again, or be moved to the dead letters."""
        due = self._store.rows("SELECT 1 FROM messages WHERE visible <= ? LIMIT 1", (self._clock(),))
        dying = self._store.rows("SELECT 1 FROM messages WHERE state = 'dying' LIMIT 1")
        if due or dying:
            with self._store.transaction() as db:
                delivery.revive(db, self._clock(), self.settings.max_deliveries)
                left = delivery.is_dying(db)
            if left:
                self._set_aside()

    def _deliver(self, messages: list[Message], limit: int, visible_after: timedelta) -> bool:
        """Add messages that are the caller's now, up to a limit; return whether others are dying."""
        wanted = limit - len(messages)
        if not self.settings.plain:
            self._index(wanted)
        token, until = secrets.randbits(62), self._clock() + visible_after // MICROSECOND
        holder = Holder(self._lock.id, token, until)
        with self._store.transaction() as db:
            now = self._clock()
            known = delivery.ready(db, wanted, now)
            records = self._intake.at(known) if known else {}
            lost = [each for each in known if each.seq not in records]
            delivery.lose(db, lost, now)
            found = [each for each in known if each.seq in records]
            delivery.hold(db, found, holder)
            new = self._taken_in(db, wanted - len(known), holder)
            dying = delivery.is_dying(db)
        self._note_lost(lost)
        messages += self._again(found, records, token)
        for taken in new:
            messages += self._messages(taken.messages, taken.rows, token)
        return dying

    def _taken_in(self, db: object, limit: int, holder: Holder) -> list[HeldRecords]:
        if not self.settings.plain or not limit:
            return []
        return self._intake.take(db, limit, holder)  # type: ignore[arg-type]

    def _index(self, limit: int) -> None:
        """Take in what waits, as far as it must be known before any is delivered."""
        more = True
        while more:
            with self._store.transaction() as db:
                more = self._intake.index(db, limit, self._clock())

    def _again(
        self, found: Sequence[TakenMessage], records: dict[int, pa.RecordBatch], token: int
    ) -> list[Message]:
        """Return messages that had rows, with their records."""
        if not found:
            return []
        names = self._parts.sources.topic().topic.schema.names
        batches = [records[each.seq] for each in found]
        whole = pa.Table.from_batches(batches).combine_chunks().to_batches()[0]
        return self._messages(found, record_rows(whole, names), token)

    def _messages(
        self, taken: Sequence[TakenMessage], rows: Sequence[RecordRow], token: int
    ) -> list[Message]:
        sources = self._parts.sources
        key = sources.topic().topic.key
        return [
            Message(
                value=row.value,
                key=_key(row.value, key),
                headers=dict(row.headers) if each.source == TOPIC else redriven_headers(row.headers),
                deliveries=each.deliveries + 1,
                topic=sources.name(each.source),
                partition=each.partition,
                offset=row.offset,
                received=durations.instant(row.received),
                queue=self,
                handle=Handle(each.seq, token, each.key),
            )
            for each, row in zip(taken, rows, strict=True)
        ]

    def _id(self, taken: TakenMessage) -> str:
        return message_id(self._parts.sources.name(taken.source), taken.partition, taken.offset)

    def _move_to_dead_letters(self) -> None:
        if self._parts.dead_letters.move_to_dead_letters(self._clock()):
            self._lock.notify()

    def _set_aside(self) -> bool:
        """Write dead letters; where that fails they stay, for later, and keep nobody from other messages."""
        try:
            self._move_to_dead_letters()
        except HeadwaterError as error:
            if error.message != self._unwritten:
                _log.error("dead letters cannot be written, and are tried again: %s", error)
            self._unwritten = error.message
            return False
        self._unwritten = ""
        return True

    def _look_after_others(self) -> None:
        """Give back what those have who have died."""
        if time.monotonic() - self._checked < CHECK_SECONDS:
            return
        self._checked = time.monotonic()
        with self._store.transaction() as db:
            gone = [each for each in delivery.consumers(db) if not self._lock.lives(each)]
            for consumer in gone:
                delivery.release_consumer(db, consumer, self.settings.max_deliveries)
        self._lock.sweep()

    def _wakeup(self) -> Wakeup:
        """Return what wakes who waits: for a record, for a message given back, for a consumer's death."""
        sources = self._parts.sources.stored().values()
        heads = [each.partition(n) / "head" for each in sources for n in range(each.topic.partitions)]
        return Wakeup(heads, [self._lock.directory])

    def _seconds_to_next(self) -> float:
        query = "SELECT MIN(visible) FROM messages WHERE visible IS NOT NULL"
        [(visible,)] = self._store.rows(query)
        if visible is None:
            return CHECK_SECONDS
        at: int = int(visible)  # type: ignore[call-overload]
        return max(0.0, (at - self._clock()) / 1e6)

    def _note_lost(self, messages: Sequence[TakenMessage]) -> None:
        if messages:
            first = messages[0]
            self._intake.lost = OffsetLost(
                f'{len(messages)} of the messages of queue "{self.topic}", group "{self.group}", are lost',
                detail=f"retention has removed the record at offset {first.offset} of partition "
                f"{first.partition}, among others, before it was acknowledged",
                hint="let the topic's retention= be longer than messages may wait",
                missed=len(messages),
                earliest=first.offset + 1,
            )

    def _raise_lost(self) -> None:
        lost, self._intake.lost = self._intake.lost, None
        if lost is not None:
            raise lost

    def _check_open(self) -> None:
        check_process(self._process)
        if self._closed:
            raise UsageError(f'queue "{self.topic}", group "{self.group}", is closed')
        self._parts.sources.topic()  # says so if the topic is gone


def _key(value: dict[str, Any], columns: Sequence[str]) -> Any:
    if len(columns) == 1:
        return value[columns[0]]
    return tuple(value[name] for name in columns) or None
