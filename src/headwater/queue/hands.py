"""Threads that call a user's function, and that no process waits for at its end.

Those of ``concurrent.futures`` are waited for when the interpreter ends: a function that never returns would
keep the process alive. Invariant: there are at most as many as were asked for, each made when it is needed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue

from headwater.closing import Closing


class DaemonHands(Closing):
    """A few threads that make calls; a call deals with what goes wrong in it."""

    def __init__(self, count: int):
        self._count, self._threads = count, 0
        self._calls: SimpleQueue[Callable[[], None] | None] = SimpleQueue()

    def submit(self, call: Callable[[], None]) -> None:
        """Let a thread make a call, from one thread only."""
        if self._threads < self._count:
            self._threads += 1
            threading.Thread(target=self._work, name="headwater-work", daemon=True).start()
        self._calls.put(call)

    def close(self) -> None:
        """Let each thread end after its call; nobody waits for that."""
        for _ in range(self._threads):
            self._calls.put(None)

    def _work(self) -> None:
        while (call := self._calls.get()) is not None:
            call()
