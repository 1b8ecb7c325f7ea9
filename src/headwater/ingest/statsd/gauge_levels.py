"""The levels of gauges, which outlive the intervals: those that were heard of last, within a bound.

Names and tags come from whoever sends. Invariant: the levels take no more than their bytes; one that is
forgotten for that is the one not heard of for the longest time, and is counted.
"""

from __future__ import annotations

from typing import NamedTuple

LEVEL_BYTES = 64 << 20
_OVERHEAD = 300
"""Bytes that a gauge takes beside its texts, about."""


class GaugeKey(NamedTuple):
    """What a gauge is known by."""

    metric: str
    tags: str

    @property
    def size(self) -> int:
        """Bytes that it takes, about."""
        return len(self.metric) + len(self.tags) + _OVERHEAD


class GaugeLevels:
    """The last level of each gauge."""

    def __init__(self, most_bytes: int = LEVEL_BYTES):
        self._levels: dict[GaugeKey, float] = {}  # in the order in which they were heard of
        self._most, self._size = most_bytes, 0
        self.forgotten = 0
        """Gauges that begin at 0 again, as there was no room for all."""

    def get(self, key: GaugeKey) -> float:
        """Return the level of a gauge; 0 if it is not known."""
        return self._levels.get(key, 0.0)

    def put(self, key: GaugeKey, level: float) -> None:
        """Note the level of a gauge."""
        if self._levels.pop(key, None) is None:
            self._size += key.size
        self._levels[key] = level
        while self._size > self._most:
            oldest = next(iter(self._levels))
            del self._levels[oldest]
            self._size -= oldest.size
            self.forgotten += 1
