"""Carries out timers when they are due, though nobody sends a command.

What is due is decided by the events alone, and carried out once by its request id: this only sees to it that
it happens in time. It follows the events as a group, and commits up to the oldest event whose timer is still
to come: after a restart it goes on from there.

Invariant: no timer is passed over: one that was due while no worker ran is carried out when one does, and an
event that cannot be read is not committed.
"""

from __future__ import annotations

import heapq
import threading

from headwater.closing import Closing
from headwater.durations import micros
from headwater.sourcing.aggregates import Aggregates
from headwater.sourcing.event_feed import DeciderFeed, PublishedEvent

POLL_SECONDS = 1.0


class TimerWorker(Closing):
    """Carries out the timers of a decider's aggregates; several may be at work, each for some partitions.

    - ``aggregates``: those of the decider, opened; they stay open.

    >>> from headwater.sourcing import unique
    >>> with unique("seat", hold="15 minutes").open("memory:") as seats:
    ...     worker = TimerWorker(seats.aggregates)
    ...     print(worker.step(timeout=0.1))
    ...     stop = threading.Event()
    ...     stop.set()
    ...     worker.run(stop)
    ...     worker.close()
    0
    """

    def __init__(self, aggregates: Aggregates):
        self._aggregates = aggregates
        decider = aggregates.decider
        self._timers = decider.settings.timers
        self._feed = DeciderFeed(aggregates.log, decider.name, decider.schema, f"timers.{decider.name}")
        self._waiting: list[tuple[int, int, int, str]] = []
        """When a timer is due, the partition and offset of its event, and its key: the next one first."""
        self._committed: dict[int, int] = {}

    def step(self, timeout: float = 0.0) -> int:
        """Take in events that have come, and carry out what is due; return how many aggregates had any.

        - ``timeout=0.0``: how many seconds to wait for events.
        """
        try:
            published = self._feed.poll(self._wait(timeout))
        except BaseException:
            self._waiting = []  # all of them lie behind what is committed, from where the feed begins again
            raise
        for each in published:
            self._take(each)
        now, count = self._aggregates.clock(), 0
        while self._waiting and self._waiting[0][0] <= now:
            self._aggregates.settle(self._waiting[0][3])
            heapq.heappop(self._waiting)
            count += 1
        self._commit()
        return count

    def run(self, stop: threading.Event) -> None:
        """Carry out timers until told to stop.

        - ``stop``: ends it within about a second after it is set.
        """
        while not stop.is_set():
            self.step(POLL_SECONDS)

    def close(self) -> None:
        """Leave the group."""
        self._feed.close()

    def _wait(self, timeout: float) -> float:
        """Return how long to wait for events: not beyond the next timer."""
        if not self._waiting:
            return timeout
        return max(0.0, min(timeout, (self._waiting[0][0] - self._aggregates.clock()) / 1e6))

    def _take(self, published: PublishedEvent) -> None:
        for timer in self._timers:
            if type(published.event) is timer.on:
                due = micros(published.recorded_at + timer.length)
                heapq.heappush(self._waiting, (due, published.partition, published.offset, published.key))

    def _commit(self) -> None:
        """Commit up to the oldest event whose timer is still to come."""
        reached = dict(self._feed.position().offsets)
        for _, partition, offset, _ in self._waiting:
            if partition in reached:
                reached[partition] = min(reached[partition], offset)
        if reached != self._committed:
            if not self._feed.commit(reached):  # partitions have gone to another, which reads them anew
                reached, self._waiting = {}, []
            self._committed = reached
