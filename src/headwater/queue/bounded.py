"""A producer that looks at how much waits: what happens when producers are faster than consumers.

Invariant: what is not appended is told, by waiting, by a count or by an error. The limit holds for one
producer to the message; several overrun it by what the others send between two looks.
"""

from __future__ import annotations

import time

from headwater.closing import Closing
from headwater.errors import BufferFull, UsageError
from headwater.log import Log, Position, Producer, Queue
from headwater.log.producer import OnFull
from headwater.record import Headers
from headwater.values.sent_rows import Row

LOOK_SECONDS = 0.1
"""How long a look at the queue counts: others may send, too."""
SHORTEST, LONGEST = 0.005, 0.1
"""Seconds between two looks at a queue that is full."""


class BoundedProducer(Closing):
    """Appends to a topic while a group's queue over it is not too deep.

    - ``log``: the open log.
    - ``topic``: where it appends.
    - ``group``: whose queue is looked at.
    - ``limit``: how many messages may be there: waiting, delayed and in flight.
    - ``on_full="block"``: what ``send`` does then: ``"block"`` waits, ``"drop"`` leaves the row out and
      counts it in ``dropped``, ``"error"`` raises ``BufferFull``.

    >>> import headwater
    >>> log = headwater.open("memory:")
    >>> _ = log.create_topic("emails", "to STRING")
    >>> with BoundedProducer(log, "emails", "mailers", limit=2, on_full="drop") as producer:
    ...     for name in ("ada", "bob", "eve"):
    ...         producer.send({"to": name})
    ...     print(producer.dropped)
    1
    """

    def __init__(self, log: Log, topic: str, group: str, *, limit: int, on_full: OnFull = "block"):
        if on_full not in ("block", "drop", "error"):
            raise UsageError(f'on_full is "block", "drop" or "error", not "{on_full}"')
        if type(limit) is not int or limit < 1:
            raise UsageError(f"a queue holds 1 message or more, not {limit!r:.60}")
        self.dropped = 0
        """Rows that ``on_full="drop"`` has left out."""
        self._limit, self._on_full = limit, on_full
        self._queue: Queue = log.queue(topic, group)
        self._producer: Producer = log.producer(topic)
        self._room, self._looked = 0, float("-inf")

    def send(self, row: Row, *, headers: Headers | None = None, timeout: float | None = None) -> None:
        """Accept one row, if there is room for it.

        - ``row``: a mapping of columns to values.
        - ``headers=None``: texts or bytes that go along with the record.
        - ``timeout=None``: how many seconds ``"block"`` waits before it raises ``BufferFull``; for ever if
          None.
        """
        if not self._has_room() and not self._wait(timeout):
            if self._on_full == "drop":
                self.dropped += 1
                return
            raise BufferFull(
                f'queue of group "{self._queue.group}" over topic "{self._queue.topic}" is full',
                detail=f"{self._limit} messages are there, as many as may be",
                hint="start more workers, or wait",
            )
        self._room -= 1
        self._producer.send(row, headers=headers)

    def flush(self) -> Position:
        """Make everything sent so far durable and return the position after it."""
        return self._producer.flush()

    def close(self) -> None:
        """Flush, then release the producer and the queue."""
        self._producer.close()
        self._queue.close()

    def _has_room(self) -> bool:
        if self._room <= 0 or time.monotonic() - self._looked > LOOK_SECONDS:
            self._producer.flush()  # what was sent counts
            self._room, self._looked = self._limit - self._depth(), time.monotonic()
        return self._room > 0

    def _depth(self) -> int:
        depth = self._queue.status().depth
        if depth is None:
            raise UsageError(
                f'queue of group "{self._queue.group}" over topic "{self._queue.topic}" cannot be bounded',
                detail="Kafka's client does not tell how much waits in a share group",
                hint="use a log in a directory",
            )
        return depth

    def _wait(self, timeout: float | None) -> bool:
        """Wait for room; return whether there is any."""
        if self._on_full != "block":
            return False
        until = None if timeout is None else time.monotonic() + timeout
        pause = SHORTEST
        while until is None or time.monotonic() < until:
            time.sleep(pause)
            pause = min(2 * pause, LONGEST)
            self._room = 0
            if self._has_room():
                return True
        return False
