"""A queue on a Kafka broker: a share group, and the dead letters that share groups do not have.

Invariant: a message leaves the queue when the broker has taken its answer; one that is dead, only after its
dead letter is durable. A crash in between writes it twice, which is told apart by its origin.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Container, Iterator, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Any, NamedTuple

import pyarrow as pa

from headwater import durations
from headwater.durations import interval, interval_text
from headwater.errors import Fenced, RowError, UnreadableRecord, UsageError
from headwater.log.dead_letter_topic import ORIGIN, Death, redriven_headers
from headwater.log.kafka.catalog import KafkaCatalog, KafkaTopic
from headwater.log.kafka.queue.dead_letters import ShareGroupDeadLetters
from headwater.log.kafka.queue.decoding import DecodedMessage, decoded
from headwater.log.kafka.queue.member import ACCEPT, REJECT, RELEASE, RecordPlace, ShareMember, place
from headwater.log.kafka.queue.members import ShareMembers
from headwater.log.process import check_process
from headwater.log.queue import Message, Queue, fenced
from headwater.log.queue_report import DeadMessage, QueueStatus
from headwater.log.queue_settings import QueueSettings

POLL_SECONDS = 0.5
UNACKNOWLEDGED = "not acknowledged in time"


class ReceivedMessage(NamedTuple):
    """A message that a share consumer has received, in one of its turns, and until when it is its own."""

    member: ShareMember
    turn: int
    received: DecodedMessage
    until: float


class KafkaQueue(Queue):
    """One consumer of a queue: several members of its share group."""

    delays = False

    def __init__(
        self, catalog: KafkaCatalog, known: KafkaTopic, group: tuple[str, str], settings: QueueSettings,
        dead_letters: ShareGroupDeadLetters,
    ):  # fmt: skip
        self.topic, self.group, self.settings = known.topic.name, group[0], settings
        self._catalog, self._known, self._dead_letters = catalog, known, dead_letters
        topics, lock = [self.topic, dead_letters.retry], interval(settings.visible_after)
        config, id = catalog.cluster.config, group[1]
        self._members = ShareMembers(lambda: ShareMember(config, id, topics, lock))
        self._waiting: deque[ReceivedMessage] = deque()
        self._done: Container[str] = ()
        self._changed = threading.Condition()
        self._process = os.getpid()
        self._closed = False

    # What a consumer calls

    def status(self) -> QueueStatus:
        """Return how many are dead; of the rest Kafka's client tells nothing."""
        self._check_open()
        dead = sum(1 for _ in self._dead_letters.letters())
        return QueueStatus(self.topic, self.group, dead=dead)

    def dead(self) -> Iterator[DeadMessage]:
        """Yield the dead letters that were neither redriven nor purged."""
        self._check_open()
        return self._dead_letters.letters()

    def redrive(self) -> int:
        """Deliver all dead letters to this group again."""
        self._check_open()
        return self._dead_letters.redrive()

    def purge(self, *, dead: bool = False) -> int:
        """Forget the dead letters; what waits is the broker's."""
        self._check_open()
        if not dead:
            raise UsageError(
                f'queue of group "{self.group}" over topic "{self.topic}" cannot be purged on Kafka',
                detail="the broker keeps how far a share group is, and its client cannot move it",
                hint="use `kafka-share-groups.sh --reset-offsets`, or delete the queue and begin at the end",
            )
        return self._dead_letters.purge()

    def close(self) -> None:
        """Give back what was received and not acknowledged, and leave the group."""
        with self._changed:
            if self._closed or os.getpid() != self._process:
                self._closed = True
                return
            self._closed = True
            self._waiting.clear()
            self._changed.notify_all()
        self._members.close()
        self._dead_letters.close()

    # What the contract leaves to a backend

    def _take(self, limit: int, visible_after: timedelta, timeout: float | None) -> list[Message]:
        if visible_after != interval(self.settings.visible_after):
            raise self._not_by_share_groups(
                f'deliver a message for "{interval_text(visible_after)}"',
                f"on Kafka that is set for a whole group, here {self.settings.visible_after}",
                "open the queue with settings=QueueSettings(visible_after=…)",
            )
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            self._check_open()
            messages = self._from_waiting(limit)
            left = POLL_SECONDS if deadline is None else min(POLL_SECONDS, deadline - time.monotonic())
            if messages or left < 0:
                return messages
            self._poll(left)
            if timeout == 0:
                return self._from_waiting(limit)

    def _acknowledge(self, messages: Sequence[Message]) -> list[Message]:
        self._check_open()
        late = set[RecordPlace]()
        for turn in {message.handle[:2] for message in messages}:
            late |= self._answer(turn, [each for each in messages if each.handle[:2] == turn], ACCEPT)
        return [message for message in messages if _place(message) in late]

    def _give_back(self, message: Message, delay: timedelta, reason: str | None) -> None:
        if delay:
            raise self._not_by_share_groups(
                "delay a message", "on Kafka what is given back is delivered at once", "give it back later"
            )
        if message.deliveries >= self.settings.max_deliveries:
            self._reject(message, reason or UNACKNOWLEDGED)
        else:
            self._settle_one(message, RELEASE)

    def _undeliver(self, messages: Sequence[Message]) -> None:
        for message in messages:
            with suppress(Fenced):  # another has it
                self._give_back(message, timedelta(), None)

    def _extend(self, message: Message, length: timedelta) -> None:
        raise self._not_by_share_groups(
            "keep a message for longer",
            "confluent-kafka cannot renew the lock of a message on Kafka",
            "open the queue with settings=QueueSettings(visible_after=…) as long as the work may take",
        )

    def _reject(self, message: Message, reason: str) -> None:
        self._check_open()
        if not message.handle.member.holds(_place(message), message.handle.turn):
            raise fenced([message])
        death = _death(message, reason, self._dead_letters.retry)
        self._dead_letters.move_to_dead_letters(message.handle.received.record, death)
        self._settle_one(message, REJECT)

    def _settle(self, done: Container[str]) -> int:
        self._done = done  # each is acknowledged when the broker delivers it once more, as it does here
        return 0

    # Inside

    def _settle_one(self, message: Message, kind: int) -> None:
        self._check_open()
        if self._answer(message.handle[:2], [message], kind):
            raise fenced([message])

    def _answer(
        self, turn: tuple[ShareMember, int], messages: Sequence[Message], kind: int
    ) -> set[RecordPlace]:
        late = turn[0].answer([_place(message) for message in messages], kind, turn[1])
        with self._changed:
            self._changed.notify_all()
        return late

    def _from_waiting(self, limit: int) -> list[Message]:
        found: list[Message] = []
        while len(found) < limit:
            with self._changed:
                if not self._waiting:
                    break
                each = self._waiting.popleft()
            if each.until > time.monotonic():  # else it is another's by now
                message = self._message(each)
                if message.deliveries > self.settings.max_deliveries:
                    self._end(message)
                else:
                    found.append(message)
        return found

    def _end(self, message: Message) -> None:
        """Make a message a dead letter that was delivered too often, unless it was done."""
        if message.id in self._done:
            self._settle_one(message, ACCEPT)
        else:
            self._reject(message, UNACKNOWLEDGED)

    def _poll(self, timeout: float) -> None:
        """Let a share consumer receive that may; wait a while where none may."""
        with self._changed:
            member = self._members.next()
            if member is None:
                self._changed.wait(timeout)
                return
        try:
            messages = member.poll(min(timeout, POLL_SECONDS / len(self._members)))
            self._members.polled(member, bool(messages))
            if messages:
                self._receive(member, messages)
        finally:
            with self._changed:
                self._members.release(member)
                self._changed.notify_all()

    def _receive(self, member: ShareMember, messages: Sequence[Any]) -> None:
        known = {name: self._topic_named(name) for name in {each.topic() for each in messages}}
        found, unfit, marks = decoded(messages, known)
        member.answer(map(place, marks), ACCEPT, member.turn)
        member.answer(map(place, unfit), RELEASE, member.turn)
        until = time.monotonic() + interval(self.settings.visible_after).total_seconds()
        with self._changed:
            self._waiting.extend(ReceivedMessage(member, member.turn, each, until) for each in found)
        for each in unfit:
            where = (each.partition(), each.offset())
            reason = RowError("its value does not fit the topic")
            raise UnreadableRecord(each.topic(), where, reason, each.value())

    def _topic_named(self, name: str) -> KafkaTopic:
        if name == self.topic:
            return self._catalog.recent(name, self._known.id)
        return self._catalog.get(name)

    def _message(self, waiting: ReceivedMessage) -> Message:
        raw, value, headers = waiting.received.message, waiting.received.value, waiting.received.headers
        key = [value[name] for name in self._known.topic.key]
        return Message(
            value=value,
            key=key[0] if len(key) == 1 else tuple(key) or None,
            headers=redriven_headers(headers) if raw.topic() == self._dead_letters.retry else dict(headers),
            deliveries=raw.delivery_count() or 1,
            topic=raw.topic(),
            partition=raw.partition(),
            offset=raw.offset(),
            received=durations.instant(raw.timestamp()[1] * 1000),
            queue=self,
            handle=waiting,
        )

    def _check_open(self) -> None:
        check_process(self._process)
        if self._closed:
            raise UsageError(f'queue "{self.topic}", group "{self.group}", is closed')

    def _not_by_share_groups(self, what: str, why: str, hint: str) -> UsageError:
        return UsageError(
            f'queue of group "{self.group}" over topic "{self.topic}" cannot {what}', detail=why, hint=hint
        )


def _place(message: Message) -> RecordPlace:
    return RecordPlace(message.topic, message.partition, message.offset)


def _death(message: Message, reason: str, retry: str) -> Death:
    if message.topic != retry:
        return Death(reason, message.deliveries, message.id)
    record: pa.RecordBatch = message.handle.received.record
    before = dict(record.column("_headers")[0].as_py() or ()).get(ORIGIN, b"")
    return Death(reason, message.deliveries, before.decode(), redriven=True)
