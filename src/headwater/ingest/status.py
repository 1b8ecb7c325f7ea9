"""How a way in is doing: what it has counted, noted in the log so that any process can tell.

Invariant: whatever comes in is counted once as what became of it, so that nothing is lost in silence.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from headwater import durations
from headwater.values.json_ready import JsonReady, calendar_time

FRESH = 20_000_000
"""Microseconds after which a way in that runs has noted something anew."""
LOSSES = (
    "malformed",
    "not_taken",
    "dropped_by_kernel",
    "overrun",
    "gauges_forgotten",
    "too_long",
    "dead",
    "truncations",
    "cut_off",
    "refused",
)
"""Counts of what did not become a record of the topic, or not as it was meant; people are told of them."""


@dataclass(frozen=True)
class IngestStatus(JsonReady):
    """How a way in is doing."""

    name: str
    address: str
    state: str
    """``running``, ``ended``, or ``silent``: nothing was noted for a while, so it does not run, or cannot
    reach the log."""
    counts: Mapping[str, int] = field(default_factory=dict)
    """What came in and what became of it, by name; a count that is not there is 0."""
    noted: int | None = None
    """When that was, in microseconds since 1970."""

    @property
    def losses(self) -> dict[str, int]:
        """What did not become a record of the topic, where there is any."""
        return {name: self.counts[name] for name in LOSSES if self.counts.get(name)}

    def facts(self) -> dict[str, Any]:
        """Return its fields, with the time as such."""
        return {**super().facts(), "counts": dict(self.counts), "noted": calendar_time(self.noted)}


class IngestCounts:
    """Counts by name, from any thread.

    >>> tally = IngestCounts({"lines": 2})
    >>> tally.add(lines=3, dead=0)
    >>> tally.to_dict()
    {'lines': 5}
    """

    def __init__(self, counts: Mapping[str, int] | None = None):
        self._lock = threading.Lock()
        self._counts = dict(counts or {})

    def add(self, **counts: int) -> None:
        """Count more of each."""
        with self._lock:
            for name, count in counts.items():
                if count:
                    self._counts[name] = self._counts.get(name, 0) + count

    def to_dict(self) -> dict[str, int]:
        """Return the counts as they are now."""
        with self._lock:
            return dict(self._counts)


def noted_state(state: str, noted: int) -> str:
    """Return the state of a way in by what it noted some time ago."""
    return "silent" if state == "running" and noted < durations.now() - FRESH else state
