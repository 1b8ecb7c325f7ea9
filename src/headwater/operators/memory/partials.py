"""Partial results by two numbers, of which parts are merged when they meet.

What is known of a place comes in parts, one with each step. The parts lie in a few runs, each sorted
by both numbers; a new run is merged with its neighbour while that is not much larger, so a part is
moved a logarithmic number of times, and there are few runs to ask.

Invariant: within a run, and in what is returned, each pair of numbers is there once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from headwater.operators.groups import Flags, Numbers
from headwater.operators.operator import FOREVER

Merge = Callable[[pa.Table, Numbers, int], pa.Table]
"""Merges rows by group: rows in the order in which they came, the group of each, and how many there are."""


@dataclass(frozen=True)
class Entries:
    """Rows, each with its two numbers."""

    major: Numbers
    minor: Numbers
    rows: pa.Table

    def __len__(self) -> int:
        return len(self.major)

    def take(self, indices: Numbers) -> Entries:
        """Return some of the entries."""
        return Entries(self.major[indices], self.minor[indices], self.rows.take(pa.array(indices)))

    def slice(self, start: int, end: int) -> Entries:
        """Return the entries from one place to another."""
        return Entries(self.major[start:end], self.minor[start:end], self.rows.slice(start, end - start))


class Partials:
    """Rows of partial results, found by a range of the first number, or by one and a range of the second."""

    def __init__(self, empty: pa.Table, merge: Merge):
        self._none = Entries(np.empty(0, np.int64), np.empty(0, np.int64), empty)
        self._merge = merge
        self._runs: list[Entries] = []
        self._held: list[int] = []

    def __len__(self) -> int:
        return sum(map(len, self._runs))

    def add(self, entries: Entries) -> None:
        """Add parts, which are merged with those of the same numbers."""
        if not len(entries):
            return
        self._push(merged([entries], self._merge))
        while len(self._runs) > 1 and len(self._runs[-2]) <= 2 * len(self._runs[-1]):
            newer, older = self._pop(), self._pop()
            self._push(merged([older, newer], self._merge))

    def between(self, first: int, last: int) -> Entries:
        """Return what has a first number from one up to, and without, another."""
        pieces = []
        for run in self._runs:
            start, end = np.searchsorted(run.major, [first, last])
            pieces += [run.slice(start, end)] if start < end else []
        return merged(pieces, self._merge) if pieces else self._none

    def count(self, first: int, last: int) -> int:
        """Return how many parts have a first number from one up to, and without, another."""
        return sum(int(np.diff(np.searchsorted(run.major, [first, last]))[0]) for run in self._runs)

    def within(self, major: Numbers, first: Numbers, last: Numbers) -> Entries:
        """Return what has one of some first numbers, and a second one in that one's range.

        The ranges of equal first numbers must not overlap.
        """
        pieces = []
        for run in self._runs:
            starts, ends = spans(run, major, first, last)
            places = spread(starts, ends)
            pieces += [run.take(places)] if len(places) else []
        return merged(pieces, self._merge) if pieces else self._none

    def drop(self, before: int) -> None:
        """Forget what has a first number before one."""
        runs, held = self._runs, self._held
        self._runs, self._held = [], []
        for run, whole in zip(runs, held, strict=True):
            cut = int(np.searchsorted(run.major, before))
            left = len(run) - cut
            if left and 2 * left > whole:
                self._runs.append(run.slice(cut, len(run)))
                self._held.append(whole)
            elif left:  # Taking copies: what has been dropped is held no longer.
                self._push(run.take(np.arange(cut, len(run))))

    def retain(self, after: int) -> None:
        """Forget what has a second number that is not after one; this looks at everything."""
        runs = [run.take(np.flatnonzero(run.minor > after)) for run in self._runs]
        self._runs, self._held = [], []
        for run in runs:
            if len(run):
                self._push(run)

    def next(self, first: int) -> int | None:
        """Return the least first number that is not before one."""
        found = [(run, int(np.searchsorted(run.major, first))) for run in self._runs]
        return min((int(run.major[place]) for run, place in found if place < len(run)), default=None)

    def all(self) -> Entries:
        """Return everything."""
        return merged(self._runs, self._merge) if self._runs else self._none

    def majors(self) -> Numbers:
        """Return the first numbers of everything, in no order."""
        return np.concatenate([self._none.major, *(run.major for run in self._runs)])

    def minors(self) -> Numbers:
        """Return the second numbers of everything, in no order."""
        return np.concatenate([self._none.minor, *(run.minor for run in self._runs)])

    def _push(self, run: Entries) -> None:
        self._runs.append(run)
        self._held.append(len(run))

    def _pop(self) -> Entries:
        self._held.pop()
        return self._runs.pop()


def merged(pieces: list[Entries], merge: Merge) -> Entries:
    """Return entries sorted by their numbers, those of equal numbers merged."""
    major = np.concatenate([piece.major for piece in pieces])
    minor = np.concatenate([piece.minor for piece in pieces])
    rows = pa.concat_tables([piece.rows for piece in pieces]).combine_chunks()
    places = arranged(major, minor)
    major, minor, rows = major[places], minor[places], rows.take(pa.array(places))
    new = opening(major, minor)
    if new.all():
        return Entries(major, minor, rows)
    rows = merge(rows, np.cumsum(new) - 1, int(new.sum()))
    return Entries(major[new], minor[new], rows)


def arranged(major: Numbers, minor: Numbers) -> Numbers:
    """Return the places of pairs of numbers in order; equal ones stay in theirs."""
    if not len(major):
        return np.empty(0, np.int64)
    width = int(minor.max()) - int(minor.min()) + 1
    if (int(major.max()) - int(major.min()) + 1) * width > FOREVER:
        return np.lexsort((minor, major))
    # As one number: that is sorted once, and fast where it is of a few sorted runs.
    return np.argsort((major - major.min()) * width + (minor - minor.min()), kind="stable")


def opening(major: Numbers, minor: Numbers) -> Flags:
    """Tell of sorted pairs of numbers which are the first of those that are equal."""
    return np.append(True, (major[1:] != major[:-1]) | (minor[1:] != minor[:-1]))[: len(major)]


def distinct(major: Numbers, minor: Numbers) -> tuple[Numbers, Numbers]:
    """Return distinct pairs of numbers, in their order."""
    places = arranged(major, minor)
    major, minor = major[places], minor[places]
    new = opening(major, minor)
    return major[new], minor[new]


def spans(run: Entries, major: Numbers, first: Numbers, last: Numbers) -> tuple[Numbers, Numbers]:
    """Return where, in sorted entries, the range of second numbers of each first number is."""
    low, high = np.searchsorted(run.major, major), np.searchsorted(run.major, major, side="right")
    return _bisect(run.minor, low, high, first), _bisect(run.minor, low, high, last)


def spread(starts: Numbers, ends: Numbers) -> Numbers:
    """Return all numbers of some ranges, range by range."""
    lengths = np.maximum(ends - starts, 0)
    before = np.cumsum(lengths) - lengths
    return np.repeat(starts - before, lengths) + np.arange(lengths.sum())


def _bisect(values: Numbers, low: Numbers, high: Numbers, wanted: Numbers) -> Numbers:
    """Return the first place, of some from low to high, whose value is not before the wanted one."""
    while (more := low < high).any():
        middle = np.where(more, (low + high) >> 1, 0)
        less = more & (values[middle] < wanted)
        low = np.where(less, middle + 1, low)
        high = np.where(more & ~less, middle, high)
    return low
