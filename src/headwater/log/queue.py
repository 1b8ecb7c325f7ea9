"""What every queue does: records of a topic as messages, each acknowledged by itself.

``tests/contract`` holds the embedded queue and Kafka's share groups to it. Invariant: a message is with one
consumer at a time; until it is acknowledged it is delivered again, or becomes a dead letter, and is never
lost in silence. What is the same everywhere (checks of arguments, defaults) is done here, once.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from headwater.closing import Closing
from headwater.durations import interval, span
from headwater.errors import Fenced, TopicError, UsageError
from headwater.log.queue_report import DeadMessage, QueueStatus
from headwater.log.queue_settings import QueueSettings
from headwater.topic import Topic

MAX_REASON = 1000
"""Characters of a reason that are kept with a dead letter."""
MOST_AT_ONCE = 1_000_000
"""Messages that one call delivers."""


@dataclass(frozen=True, eq=False)
class Message:
    """A record that a queue has delivered, to be acknowledged, given back or rejected.

    Made by ``Queue.receive``. A call that comes too late, for the message was given to another meanwhile,
    raises ``Fenced`` and changes nothing.
    """

    value: dict[str, Any]
    """The row."""
    key: Any
    """The value of its key column, a tuple of several, or None where the topic has no key."""
    headers: Mapping[str, bytes]
    deliveries: int
    """How often it was delivered, this time included."""
    topic: str
    partition: int
    offset: int
    received: datetime
    """When the log stored it."""
    queue: Queue = field(repr=False)
    handle: Any = field(repr=False)
    """What the queue knows it by."""

    @property
    def id(self) -> str:
        """The place of its record, which no other message has: ``TOPIC:PARTITION:OFFSET``."""
        return message_id(self.topic, self.partition, self.offset)

    def ack(self) -> None:
        """Say that it is done: it is never delivered again.

        >>> import headwater
        >>> log = headwater.open("memory:")
        >>> _ = log.create_topic("emails", "to STRING")
        >>> with log.producer("emails") as producer:
        ...     producer.send({"to": "ada"})
        >>> with log.queue("emails", "mailers") as queue:
        ...     for message in queue.receive(timeout=1):
        ...         message.ack()
        ...     print(queue.status().depth)
        0
        """
        self.queue.ack([self])

    def nack(self, delay: str | timedelta | None = None, reason: str | None = None) -> None:
        """Give it back: it is delivered again, to whoever asks; after the last delivery it is dead.

        - ``delay=None``: how long after, ``"10 seconds"``; at once if None.
        - ``reason=None``: why, for the dead letter that it may become.
        """
        wait = timedelta() if delay is None else span(delay)
        self.queue._give_back(self, wait, _reason(reason))

    def extend(self, visible_after: str | timedelta | None = None) -> None:
        """Keep it for longer, from now on.

        - ``visible_after=None``: how long; as long as the queue's setting says if None.
        """
        chosen = self.queue.settings.visible_after if visible_after is None else visible_after
        self.queue._extend(self, interval(chosen))

    def reject(self, reason: str) -> None:
        """Make it a dead letter: it will never be right, however often it is delivered.

        - ``reason``: why, for people.
        """
        self.queue._reject(self, _reason(reason) or "rejected")


class Queue(Closing):
    """The records of a topic as messages that the consumers of a group share.

    Made by ``Log.queue``. Each message goes to one consumer of the group, however many share a partition, and
    one that is slow holds no other up. It is delivered at least once: one that was not acknowledged when its
    consumer dies, or when its time is over, is delivered again, up to the ``max_deliveries`` of its settings;
    after those it is a dead letter. Other groups do not notice. It may be used from many threads; a process
    that forks opens its own.
    """

    topic: str
    group: str
    settings: QueueSettings
    delays: bool
    """Whether ``nack`` can delay a message, and ``extend`` keep it."""

    def receive(
        self,
        limit: int = 1,
        *,
        visible_after: str | timedelta | None = None,
        timeout: float | None = None,
    ) -> list[Message]:
        """Return messages, as many as there are, and wait where there is none.

        - ``limit=1``: how many at the most.
        - ``visible_after=None``: how long they are the caller's, before others may have them;
          as long as the queue's setting says if None.
        - ``timeout=None``: how many seconds to wait for the first; for ever if None. None has come in time:
          the list is empty.

        Raises ``OffsetLost`` once where retention has removed records that were not received; the next call
        goes on behind them.
        """
        if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= MOST_AT_ONCE:
            raise UsageError(
                f"a queue delivers from 1 to {MOST_AT_ONCE:,} messages at once, not {limit!s:.60}"
            )
        check_timeout(timeout)
        length = interval(self.settings.visible_after if visible_after is None else visible_after)
        return self._take(limit, length, timeout)

    def ack(self, messages: Sequence[Message]) -> None:
        """Acknowledge messages, all in one write.

        - ``messages``: of this queue. Where some are no longer the caller's, the others are acknowledged, and
          ``Fenced`` names them.
        """
        if isinstance(messages, Message):
            raise UsageError("ack takes a list of messages", hint="write ack([message]), or message.ack()")
        for message in messages:
            if not isinstance(message, Message):
                raise UsageError(f"ack takes messages that receive has returned, not {message!r:.60}")
            if message.queue is not self:
                raise UsageError(f"message {message.id} was received by another queue")
        stale = self._acknowledge(messages)
        if stale:
            raise fenced(stale)

    @abstractmethod
    def status(self) -> QueueStatus:
        """Return how much waits, is in flight, and is dead."""

    @abstractmethod
    def dead(self) -> Iterator[DeadMessage]:
        """Yield the dead letters that were neither redriven nor purged, the oldest first."""

    @abstractmethod
    def redrive(self) -> int:
        """Deliver all dead letters to this group again, their deliveries counted anew; return how many."""

    @abstractmethod
    def purge(self, *, dead: bool = False) -> int:
        """Forget what waits, and return how many messages that were.

        - ``dead=False``: True forgets the dead letters instead.

        Those in flight stay with their consumers. The records stay in the topic; other groups do not notice.
        """

    @abstractmethod
    def close(self) -> None:
        """Give back at once what was received and not acknowledged. A ``with`` block does it at its end."""

    # What a backend does

    @abstractmethod
    def _take(self, limit: int, visible_after: timedelta, timeout: float | None) -> list[Message]:
        """Deliver messages."""

    @abstractmethod
    def _acknowledge(self, messages: Sequence[Message]) -> list[Message]:
        """Acknowledge messages, and return those that are no longer the caller's."""

    @abstractmethod
    def _settle(self, done: Container[str]) -> int:
        """Acknowledge messages, by their ids, that were done by a consumer that died before it could say so.

        Delivered once more they would be found to be done; but after the last delivery there is none. Those
        of living consumers stay. Returns how many there were; none where a broker keeps count of deliveries,
        which delivers each once more: it is acknowledged then.
        """

    @abstractmethod
    def _give_back(self, message: Message, delay: timedelta, reason: str | None) -> None:
        """Let a message be delivered again after a while, or be dead after its last delivery."""

    @abstractmethod
    def _undeliver(self, messages: Sequence[Message]) -> None:
        """Give back messages that nobody has seen, as if they had not been delivered; others' stay theirs.

        Where a broker counts deliveries, this one counts.
        """

    @abstractmethod
    def _extend(self, message: Message, length: timedelta) -> None:
        """Keep a message for its consumer, from now on."""

    @abstractmethod
    def _reject(self, message: Message, reason: str) -> None:
        """Make a message a dead letter."""


def check_timeout(seconds: float | None) -> None:
    """Refuse a time to wait that is none."""
    number = isinstance(seconds, int | float) and not isinstance(seconds, bool) and seconds == seconds
    if seconds is not None and not number:
        raise UsageError(
            f"timeout is a number of seconds, not {seconds!r:.60}", hint="write 1.5, or None to wait for ever"
        )


def check_kept(topic: Topic) -> None:
    """Refuse a topic whose records go whether they were received or not."""
    if topic.compacted:
        raise UsageError(
            f'topic "{topic.name}" is compacted and cannot be read as a queue',
            detail="compaction removes records, whether they were received or not",
            hint="make a topic of its own for the work",
        )


def check_alterable(topic: str, changes: Mapping[str, Any], groups: Callable[[], Sequence[str]]) -> None:
    """Refuse compaction of a topic over which there are queues: it would remove what waits in them."""
    if changes.get("cleanup") != "compact" or not (known := groups()):
        return
    raise TopicError(
        f'topic "{topic}" cannot become compacted: it is read as a queue',
        detail=f"compaction would remove messages of group {', '.join(known[:3])} that nobody has received",
        hint=f"`headwater queue delete {topic} --group {known[0]}` forgets a queue and what waits in it; "
        "or make a topic of its own for the newest of each key",
    )


def message_id(topic: str, partition: int, offset: int) -> str:
    """Return the id of the message that a record is."""
    return f"{topic}:{partition}:{offset}"


def fenced(messages: Sequence[Message]) -> Fenced:
    """Return the error for messages that are no longer the caller's."""
    named = ", ".join(message.id for message in messages[:3]) + (", …" if len(messages) > 3 else "")
    subject = f"message {named} is" if len(messages) == 1 else f"messages {named} are"
    return Fenced(
        f"{subject} no longer yours",
        detail="the time for it was over and it was given to another, or it was acknowledged before; "
        "nothing was changed",
        hint="let visible_after= of receive be longer than the work takes, or extend() it meanwhile",
    )


def _reason(text: str | None) -> str | None:
    """Return a reason as it is kept: cut, and what is no text (half of a pair of surrogates) escaped."""
    if text is None:
        return None
    return str(text)[:MAX_REASON].encode("utf-8", "backslashreplace").decode()[:MAX_REASON]
