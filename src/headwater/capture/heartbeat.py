"""Heartbeats: how far a capture has read by the database's clock, written as marks where nothing changes.

Once a second the source is asked what time it is and how far it has come; when the stream has passed that
position, everything that was committed before that time is in the log. A table whose event time is that of
the commit then gets a mark, so that nobody waits for it though nothing changes there. Transactions that
overlap may have times and positions in different orders, so a mark stays ``SAFETY`` behind, or the table's
lateness where that is more.

Invariant: a mark is written behind all rows of its time, of a table whose snapshot is complete; and the marks
of a table in which nothing changes become sparser, so that their number grows with the logarithm of the time.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from headwater.capture.source import CaptureSource, SourceMoment

SECONDS = 1.0
"""How often the source is asked, and a table that changes now and then is marked."""
SPARSER = 3_600
"""The pause between two marks is this part of how long nothing has changed, if that is longer."""
SAFETY = 2_000_000
"""Microseconds that a transaction's time may be before the moment of its commit without being late."""


class Heartbeat:
    """How far a capture has read, by the clock of its database."""

    def __init__(self, source: CaptureSource):
        self._source = source
        self._due = 0.0
        self._asked: SourceMoment | None = None
        self.reached: int | None = None
        """A time, in microseconds since 1970, before which nothing is committed that was not delivered."""

    def beat(self, position: str) -> int | None:
        """Return how far everything is delivered, if that is known anew; ``position`` is the stream's."""
        now = time.monotonic()
        if self._asked is None and now >= self._due:
            self._asked, self._due = self._source.moment(), now + SECONDS
        if self._asked is None or not self._source.passed(position, self._asked.position):
            return None
        self.reached, self._asked = self._asked.time, None
        return self.reached


class TableMarks:
    """When a table's topic is marked."""

    def __init__(self, mark: Callable[[int], None], lateness: int):
        self._mark, self._behind = mark, max(SAFETY, lateness)
        self._newest = self._marked = 0
        self._changed_at, self._marked_at = time.monotonic(), 0.0

    def changed(self, committed: int) -> None:
        """Take in that a row was written, and its time, which tells readers as much as a mark."""
        self._newest, self._changed_at = max(self._newest, committed), time.monotonic()

    def reached(self, moment: int) -> None:
        """Mark the topic where that tells anything new: everything before a moment has been written."""
        now, until = time.monotonic(), moment - self._behind
        pause = max(SECONDS / 2, (now - self._changed_at) / SPARSER)
        if now < self._marked_at + pause or until <= max(self._marked, self._newest):
            return
        self._mark(until)
        self._marked, self._marked_at = until, now
