"""Where windows of one length that begin at regular times lie: arithmetic, and nothing else.

Windows begin at multiples of ``hop`` since 1970 UTC, and an offset. A pane is the longest stretch of
time that no edge falls into.

Invariant: a window has its start and not its end, and is a whole number of panes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from headwater.operators.event_time import Times
from headwater.operators.groups import Numbers

T = TypeVar("T", int, Times)


@dataclass(frozen=True)
class Grid:
    """Lengths in microseconds; ``width`` is that of a pane."""

    size: int
    hop: int
    width: int
    offset: int = 0

    def pane(self, at: T) -> T:
        """Return the start of the pane of a time."""
        return self._floor(at, self.width)

    def first(self, at: T) -> T:
        """Return the start of the first window that a time is in."""
        return self._floor(at - self.size, self.hop) + self.hop

    def last(self, at: T) -> T:
        """Return the start of the last window that a time is in."""
        return self._floor(at, self.hop)

    def open(self, watermark: int) -> int:
        """Return the start of the first window that ends after a clock."""
        return self.first(watermark)

    def windows(self, panes: Times) -> tuple[Numbers, Times]:
        """Return the starts of the windows that each pane is in, with the pane's place."""
        first = self.first(panes)
        counts = (self.last(panes) - first) // self.hop + 1
        places = np.repeat(np.arange(len(panes)), counts)
        nth = np.arange(len(places)) - np.repeat(np.cumsum(counts) - counts, counts)
        return places, first[places] + nth * self.hop

    def near(self, panes: Times) -> tuple[Numbers, Times]:
        """Return the panes that share a window with each of some, with its place."""
        count = self.size // self.width
        steps = np.arange(1 - count, count) * self.width
        places = np.repeat(np.arange(len(panes)), len(steps))
        return places, (panes[:, None] + steps).ravel()

    def _floor(self, at: T, length: int) -> T:
        return (at - self.offset) // length * length + self.offset
