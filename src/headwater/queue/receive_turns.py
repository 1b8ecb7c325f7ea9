"""Waits for messages in threads, in turns so short that one who is cancelled soon occupies none.

The threads are a queue's own: those that wait keep nobody else's calls waiting. Invariant: what a turn has
received is either returned to who waits, or given back as if it had not been delivered.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

from headwater.errors import HeadwaterError, UsageError
from headwater.log import Message, Queue
from headwater.log.queue import check_timeout

TURN_SECONDS = 0.2
"""How long a thread waits at once: so long it may go on after nobody waits for it."""
_log = logging.getLogger("headwater")
Receive = Callable[[float], list[Message]]


class ReceiveTurns:
    """Receives from one queue, for many who wait."""

    def __init__(self, queue: Queue):
        self._queue = queue
        self._threads = ThreadPoolExecutor(thread_name_prefix="headwater-receive")
        self._closed = False

    async def wait(self, receive: Receive, timeout: float | None) -> list[Message]:
        """Return what is received; an empty list when the time is over."""
        check_timeout(timeout)
        deadline = float("inf") if timeout is None else time.monotonic() + timeout
        left = deadline - time.monotonic()
        while not (messages := await self._turn(receive, max(0, min(left, TURN_SECONDS)))):
            left = deadline - time.monotonic()
            if left <= 0:
                break
        return messages

    def close(self) -> None:
        """Wait for the turns that go on; there are no more."""
        self._closed = True
        self._threads.shutdown()

    async def _turn(self, receive: Receive, seconds: float) -> list[Message]:
        if self._closed:
            raise UsageError(f'queue "{self._queue.topic}", group "{self._queue.group}", is closed')
        turn = self._threads.submit(receive, seconds)
        try:
            return await asyncio.wrap_future(turn)
        except asyncio.CancelledError:
            turn.add_done_callback(self._give_back)  # in its thread, for which ``close`` waits
            raise

    def _give_back(self, turn: Future[list[Message]]) -> None:
        """Give back what a turn has received for which nobody waits."""
        try:
            if not turn.cancelled() and (messages := turn.result()):
                self._queue._undeliver(messages)
        except HeadwaterError as error:  # nobody else would be told
            _log.error("%s", error)
