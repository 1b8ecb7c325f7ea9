"""Many lengths of time, counted: exactly for chosen lengths, and nearly for every quantile.

Invariant: memory is the same for any number of them. How many are over one of the chosen lengths is
exact; a quantile is never too low, and at most 1/128 too high.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import timedelta

import numpy as np
import numpy.typing as npt

from headwater.durations import MICROSECOND

Ints = npt.NDArray[np.int64]
_BITS = 52 - 7
"""What is left of a float's fraction, when shifted away, is 128 steps for each doubling."""
_ONE = int(np.float64(1.0).view(np.int64)) >> _BITS


class Delays:
    """Counts lengths of time, in microseconds; those that are not positive count as zero.

    >>> delays = Delays([timedelta(seconds=1), timedelta(minutes=1)])
    >>> delays.add(np.array([-5, 0, 500_000, 1_000_000, 30_000_000]))
    >>> delays.over(timedelta(seconds=1)), delays.quantile(0.6), delays.largest
    (1, datetime.timedelta(microseconds=501759), datetime.timedelta(seconds=30))
    """

    def __init__(self, lengths: Iterable[timedelta]):
        self.lengths = tuple(sorted({timedelta(), *lengths}))
        """Those that are counted exactly; zero is always one of them."""
        self._edges = np.array([each // MICROSECOND for each in self.lengths])
        self._within = np.zeros(len(self._edges) + 1, np.int64)
        self._bins = np.zeros(64 << 7, np.int64)
        self._largest = 0

    @property
    def count(self) -> int:
        """How many there are."""
        return int(self._within.sum())

    @property
    def largest(self) -> timedelta:
        """The longest; zero if there is none."""
        return self._largest * MICROSECOND

    def add(self, lengths: Ints) -> None:
        """Count some more."""
        positive = lengths[lengths > 0]
        self._within[0] += len(lengths) - len(positive)
        if len(positive):
            indexes = np.searchsorted(self._edges, positive)
            self._within += np.bincount(indexes, minlength=len(self._within))
            self._bins += np.bincount(_bins(positive), minlength=len(self._bins))
            self._largest = max(self._largest, int(positive.max()))

    def over(self, length: timedelta) -> int:
        """Return how many are longer than one of ``lengths``."""
        return int(self._within[self.lengths.index(length) + 1 :].sum())

    def quantile(self, share: float) -> timedelta:
        """Return a length that at least this share of them does not exceed."""
        rank = math.ceil(share * self.count)
        zeros = int(self._within[0])
        if rank <= zeros:
            return timedelta()
        index = int(np.searchsorted(np.cumsum(self._bins), rank - zeros))
        return min(_upper(index), self._largest) * MICROSECOND


def _bins(lengths: Ints) -> Ints:
    """Return the bins of positive lengths: the bits of a float, read as a number, grow with it."""
    return (lengths.astype(np.float64).view(np.int64) >> _BITS) - _ONE


def _upper(index: int) -> int:
    """Return the largest length of a bin."""
    return math.ceil(np.int64((index + _ONE + 1) << _BITS).view(np.float64)) - 1
