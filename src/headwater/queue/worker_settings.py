"""What can be chosen for a worker."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from headwater.durations import interval
from headwater.errors import UsageError


@dataclass(frozen=True)
class WorkerSettings:
    """How a worker goes about its messages.

    - ``concurrency=8``: how many it works on at once, in threads; those of async functions in one event loop.
    - ``backoff="1 second"``: how long a message waits after it has failed once; twice as long after each
      further time.
    - ``longest_backoff="5 minutes"``: how long at the most.
    - ``visible_after=None``: how long a message is the worker's before it has to say that it is still at it,
      which it does; as the queue's setting says if None.
    - ``stop_after="30 seconds"``: how long it waits, when it is to stop, for what it has begun.
    """

    concurrency: int = 8
    backoff: str | timedelta = "1 second"
    longest_backoff: str | timedelta = "5 minutes"
    visible_after: str | timedelta | None = None
    stop_after: str | timedelta = "30 seconds"

    def __post_init__(self) -> None:
        if type(self.concurrency) is not int or not 1 <= self.concurrency <= 1000:
            raise UsageError(f"concurrency is a whole number from 1 to 1000, not {self.concurrency!r:.60}")
        for length in (self.backoff, self.longest_backoff, self.stop_after):
            interval(length)
        if self.visible_after is not None:
            interval(self.visible_after)
