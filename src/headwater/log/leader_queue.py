"""Group commit among threads: while one works for several, those who come meanwhile wait to be the next.

Whoever comes first leads: it takes all that wait, does their work in one go, and makes the next one in the
queue the leader. Nobody waits for work that began after its own was done, and no thread is kept for it.

Invariant: each item is handed to the work once, in the order in which they came.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")
_GATHERING = 0.5
"""For how much of the time that the work last took its beginning is put off."""
_PAUSE_SECONDS = 0.00005


class _Waiter(Generic[Item, Result]):
    """One caller, until its result is there or it leads."""

    def __init__(self, item: Item):
        self.item = item
        self.result: Result | BaseException | None = None
        self.is_done = False
        self.turn = threading.Lock()
        self.turn.acquire()


class LeaderQueue(Generic[Item, Result]):
    """Does the work of many callers in a few goes.

    ``work`` gets the items, and returns for each its result, or an error that its caller is to see.
    """

    def __init__(self, work: Callable[[Sequence[Item]], Sequence[Result | BaseException]], most: int):
        self._work, self._most = work, most
        self._lock = threading.Lock()
        self._queue: deque[_Waiter[Item, Result]] = deque()
        self._is_led = False
        self._callers = 1
        """How many there were the last time: those that were worked for, and those that came meanwhile."""
        self._took = 0.0

    def submit(self, item: Item) -> Result:
        """Have an item worked on, and return its result."""
        mine = _Waiter[Item, Result](item)
        with self._lock:
            self._queue.append(mine)
            leads, self._is_led = not self._is_led, True
        if not leads:
            mine.turn.acquire()
        if not mine.is_done:
            self._lead()
        if isinstance(mine.result, BaseException):
            raise mine.result
        return mine.result  # type: ignore[return-value]  # it is done

    def _gather(self) -> None:
        """Wait a little for those who were there the last time: they are about to come again.

        Without it callers fall into two halves that take turns, each with half as many as could share it.
        """
        deadline = time.monotonic() + self._took * _GATHERING
        while len(self._queue) < self._callers and time.monotonic() < deadline:
            time.sleep(_PAUSE_SECONDS)

    def _lead(self) -> None:
        self._gather()
        began = time.monotonic()
        with self._lock:
            group = [self._queue.popleft() for _ in range(min(self._most, len(self._queue)))]
        try:
            results = self._work([each.item for each in group])
        except BaseException as error:
            results = [error] * len(group)
            if not isinstance(error, Exception):  # Ctrl-C of the leader: the others only know that it failed
                results = [
                    error,
                    *[InterruptedError("the thread that did the work was interrupted")] * len(group[1:]),
                ]
        for each, result in zip(group, results, strict=True):
            each.result, each.is_done = result, True
        self._took = time.monotonic() - began
        with self._lock:
            self._callers = len(group) + len(self._queue)
            following = self._queue[0] if self._queue else None
            self._is_led = following is not None
        if following is not None:
            following.turn.release()
        for each in group[1:]:  # the first is the leader itself
            each.turn.release()
