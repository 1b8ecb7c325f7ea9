"""How long to wait before the next attempt: longer each time, and not at the same moment as others.

Invariant: a wait is no longer than its step, which doubles up to the longest, and no shorter than the jitter
leaves of it.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count


@dataclass(frozen=True)
class Backoff:
    """Waits that double, with jitter.

    >>> [Backoff(1.0, 300.0, chance=lambda: 1.0).seconds(attempt) for attempt in (1, 2, 3, 50)]
    [1.0, 2.0, 4.0, 300.0]
    """

    first: float
    longest: float
    jitter: float = 0.5
    """Which part of a step may be left out, at random: many who failed together do not come back together."""
    chance: Callable[[], float] = random.random

    def seconds(self, attempt: int) -> float:
        """Return how long to wait after the attempt of a number, from 1 on."""
        step = min(self.longest, self.first * 2.0 ** min(attempt - 1, 60))
        return step * (1.0 - self.jitter * (1.0 - self.chance()))

    def pauses(self, within: float | None = None) -> Iterator[float]:
        """Yield one wait after the other, as long as they end within some seconds; for ever if None."""
        until = None if within is None else time.monotonic() + within
        for attempt in count(1):
            pause = self.seconds(attempt)
            if until is not None and time.monotonic() + pause > until:
                return
            yield pause
