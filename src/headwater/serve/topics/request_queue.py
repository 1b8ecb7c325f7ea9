"""Requests on their way from the event loop to the thread that appends: handed over together, not one by one.

A thread that is woken for each request takes the interpreter from the event loop each time. Invariant: what
was put is taken, in that order and once; the first that waits does so for a bounded time.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque

from headwater.serve.topics.submission import Submission

GROUP_BYTES = 16 << 20
GROUP_REQUESTS = 1024
LINGER_SECONDS = 0.005
"""How long a group waits at most to become as large as the one before."""


class RequestQueue:
    """What waits for the next write."""

    def __init__(self, loop: asyncio.AbstractEventLoop):
        self._loop = loop
        self._requests: deque[Submission] = deque()
        self._expected = 1
        """How many the last group had: those who were answered together come again together."""
        self._roused = threading.Event()
        self._lingering: asyncio.TimerHandle | None = None
        self._closed = False
        self._closing = threading.Lock()

    def put(self, submission: Submission) -> bool:
        """Take a request, unless it is closed, and tell whether it was; call it in the event loop alone."""
        with self._closing:
            if self._closed:
                return False
            self._requests.append(submission)
        if len(self._requests) >= self._expected:
            self._rouse()
        elif self._lingering is None:
            self._lingering = self._loop.call_later(LINGER_SECONDS, self._rouse)
        return True

    def take(self) -> list[Submission]:
        """Wait for requests and return them, up to a size; none when it is closed and all are taken."""
        while True:
            self._roused.clear()
            if self._closed or len(self._requests) >= self._expected:
                break
            # Those that came during the last write have no timer: more than they were not yet expected.
            self._roused.wait(LINGER_SECONDS if self._requests else None)
            if self._requests:
                break
        group = self._first()
        self._expected = max(1, len(group))
        return group

    def close(self) -> None:
        """Let ``take`` return what there is, and then nothing."""
        with self._closing:
            self._closed = True
        self._roused.set()

    def _rouse(self) -> None:
        if self._lingering is not None:
            self._lingering.cancel()
            self._lingering = None
        if not self._roused.is_set():
            self._roused.set()

    def _first(self) -> list[Submission]:
        group: list[Submission] = []
        size = 0
        while self._requests and size < GROUP_BYTES and len(group) < GROUP_REQUESTS:
            group.append(self._requests.popleft())
            size += len(group[-1].body.data)
        return group
