"""A queue for programs that await: the same messages, the same promises.

Each call is made in a thread, for SQLite and Kafka's client wait in theirs. Who waits for messages does so in
short turns, in threads of the queue's own. Invariant: a call that is cancelled loses no message, uses up no
delivery and soon occupies no thread: what its last turn received is given back as if nobody had received it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from types import TracebackType
from typing import Any, Self

from headwater.log import Message, Queue, QueueStatus
from headwater.queue.receive_turns import ReceiveTurns


@dataclass(frozen=True, eq=False)
class AsyncMessage:
    """A message whose answers are awaited."""

    message: Message

    @property
    def value(self) -> dict[str, Any]:
        """The row."""
        return self.message.value

    @property
    def key(self) -> Any:
        """The value of its key."""
        return self.message.key

    @property
    def headers(self) -> Mapping[str, bytes]:
        """Its headers."""
        return self.message.headers

    @property
    def deliveries(self) -> int:
        """How often it was delivered, this time included."""
        return self.message.deliveries

    @property
    def id(self) -> str:
        """The place of its record."""
        return self.message.id

    async def ack(self) -> None:
        """Say that it is done."""
        await asyncio.to_thread(self.message.ack)

    async def nack(self, delay: str | timedelta | None = None, reason: str | None = None) -> None:
        """Give it back.

        - ``delay=None``: after which it is delivered again; at once if None.
        - ``reason=None``: why, for the dead letter that it may become.
        """
        await asyncio.to_thread(self.message.nack, delay, reason)

    async def extend(self, visible_after: str | timedelta | None = None) -> None:
        """Keep it for longer, from now on.

        - ``visible_after=None``: how long; as long as the queue's setting says if None.
        """
        await asyncio.to_thread(self.message.extend, visible_after)

    async def reject(self, reason: str) -> None:
        """Make it a dead letter.

        - ``reason``: why, for people.
        """
        await asyncio.to_thread(self.message.reject, reason)


class AsyncQueue:
    """A queue whose messages are awaited.

    >>> import headwater
    >>> log = headwater.open("memory:")
    >>> _ = log.create_topic("emails", "to STRING")
    >>> with log.producer("emails") as producer:
    ...     producer.send({"to": "ada"})
    >>> async def work():
    ...     async with AsyncQueue(log.queue("emails", "mailers")) as queue:
    ...         for message in await queue.receive(10, timeout=1):
    ...             print(message.value["to"])
    ...             await message.ack()
    >>> asyncio.run(work())
    ada
    """

    def __init__(self, queue: Queue):
        self.queue = queue
        self._turns = ReceiveTurns(queue)

    async def receive(
        self,
        limit: int = 1,
        *,
        visible_after: str | timedelta | None = None,
        timeout: float | None = None,
    ) -> list[AsyncMessage]:
        """Return messages, as many as there are, and wait where there is none.

        - ``limit=1``: how many at the most.
        - ``visible_after=None``: how long they are the caller's; as the queue's setting says if None.
        - ``timeout=None``: how many seconds to wait for the first; for ever if None.

        Cancelled, it ends at once, and what it would have received goes to others, its deliveries as before.
        """

        def receive(seconds: float) -> list[Message]:
            return self.queue.receive(limit, visible_after=visible_after, timeout=seconds)

        return [AsyncMessage(each) for each in await self._turns.wait(receive, timeout)]

    async def ack(self, messages: Sequence[AsyncMessage]) -> None:
        """Acknowledge messages, all in one write.

        - ``messages``: of this queue.
        """
        await asyncio.to_thread(self.queue.ack, [each.message for each in messages])

    async def status(self) -> QueueStatus:
        """Return how much waits, is in flight, and is dead."""
        return await asyncio.to_thread(self.queue.status)

    async def close(self) -> None:
        """Give back at once what was received and not acknowledged."""
        await asyncio.to_thread(self._turns.close)
        await asyncio.to_thread(self.queue.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
