"""How a worker is doing: what became of the messages that it was given.

Invariant: each message that was received is counted once as what became of it, or is in hand.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, fields

from headwater.values.json_ready import JsonReady


@dataclass(frozen=True)
class WorkerStatus(JsonReady):
    """Counts of one worker since it began."""

    done: int = 0
    retried: int = 0
    """Failed, and given back to be tried again."""
    dead: int = 0
    """Failed for the last time, or rejected."""
    overtaken: int = 0
    """Finished when they were somebody else's already: done twice, perhaps."""
    in_hand: int = 0
    """Being worked on now."""
    last_error: str | None = None
    """What its function, or the log, has failed with last; None where nothing has failed."""


class WorkerCounts:
    """Counts by name, from any thread.

    >>> counts = WorkerCounts()
    >>> counts.add(done=2)
    >>> counts.status().done
    2
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts = {each.name: 0 for each in fields(WorkerStatus) if each.type == "int"}
        self._last_error: str | None = None

    def add(self, **counts: int) -> None:
        """Count more of each."""
        with self._lock:
            for name, count in counts.items():
                self._counts[name] += count

    def failed(self, why: str) -> None:
        """Note what something has failed with."""
        with self._lock:
            self._last_error = why

    def status(self) -> WorkerStatus:
        """Return the counts as they are now."""
        with self._lock:
            return WorkerStatus(**self._counts, last_error=self._last_error)
