"""Group commit among threads: while one works for several, those who come meanwhile wait to be the next.

Whoever comes first leads: it takes all that wait, does their work in one go, and makes the next one in the
queue the leader. Nobody waits for work that began after its own was done, and no thread is kept for it.

Invariant: each item is handed to the work once at the most, in the order in which they came; and whoever
leaves, by an exception of a signal handler too, at any point, hands on what it led.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from itertools import islice
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
        self._leader: _Waiter[Item, Result] | None = None
        """The first of the queue, or of the group."""
        self._group: list[_Waiter[Item, Result]] = []
        """Those for whom the leader works."""
        self._callers = 1
        """How many there were the last time: those that were worked for, and those that came meanwhile."""
        self._took = 0.0

    def submit(self, item: Item) -> Result:
        """Have an item worked on, and return its result."""
        mine = _Waiter[Item, Result](item)
        try:
            self._wait_or_lead(mine)
        finally:
            try:
                self._leave(mine)
            except BaseException:  # a signal: what is left to do of it is done now
                self._leave(mine)
                raise
        if isinstance(mine.result, BaseException):
            raise mine.result
        return mine.result  # type: ignore[return-value]  # it is done

    def _wait_or_lead(self, mine: _Waiter[Item, Result]) -> None:
        with self._lock:
            self._queue.append(mine)
            self._leader = self._leader or mine
            leads = self._leader is mine
        if not leads:
            mine.turn.acquire()
        if not mine.is_done:
            self._lead()

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
            group = self._group = list(islice(self._queue, self._most))
            for _ in group:
                self._queue.popleft()
        for each, result in zip(group, self._results(group), strict=True):
            each.result, each.is_done = result, True
        self._took = time.monotonic() - began

    def _results(self, group: Sequence[_Waiter[Item, Result]]) -> Sequence[Result | BaseException]:
        try:
            return self._work([each.item for each in group])
        except Exception as error:
            return [error] * len(group)
        except BaseException as error:  # Ctrl-C of the leader: the others only know that it failed
            return [error, *[_interrupted() for _ in group[1:]]]

    def _leave(self, mine: _Waiter[Item, Result]) -> None:
        """Take a caller out of the queue; what it led goes to the next. Done again, it does what is left."""
        with self._lock:
            if self._leader is mine:
                self._hand_on(mine)
            elif not mine.is_done and mine in self._queue:  # interrupted while it waited
                self._queue.remove(mine)

    def _hand_on(self, mine: _Waiter[Item, Result]) -> None:
        for each in (mine, *self._group):
            if not each.is_done:  # the leader was interrupted: nobody knows how far it got
                each.result, each.is_done = _interrupted(), True
        while self._queue and self._queue[0].is_done:
            self._queue.popleft()
        following = self._queue[0] if self._queue else None
        self._callers = max(1, len(self._group) + len(self._queue))
        for waiter in (*([following] if following else ()), *self._group):
            if waiter is not mine and waiter.turn.locked():
                waiter.turn.release()
        self._group, self._leader = [], following


def _interrupted() -> InterruptedError:
    return InterruptedError("the thread that did the work was interrupted")
