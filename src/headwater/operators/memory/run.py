"""A run: entries that are sorted and never change, in memory or in files that are mapped into it.

A large run has several parts, each of them sorted and behind the one before, so that what is written and
merged at a time is bounded. A mapped part costs no memory of the process: the pages that are looked into are
the system's.

Invariant: a run has each pair of numbers once, unless its container merges none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from headwater.operators.event_time import FOREVER, NEVER
from headwater.operators.groups import Numbers
from headwater.operators.memory.entries import Entries, beyond, bisect, closed_spans, spans, spread, stretches

_FEW = 16
"""First numbers that are looked for one after the other."""


class Stretch(NamedTuple):
    """A stretch of a file that is never changed, and what is known of it without reading it."""

    file: str
    size: int
    at: int = 0
    last_minor: int | None = None
    """The greatest second number of a part of a run, if it is one."""


class Matches(NamedTuple):
    """Entries within ranges that were asked for: which range each one is of, and the entries as they lie."""

    of: Numbers
    entries: Entries


@dataclass(frozen=True)
class Run:
    """Sorted parts, none of them empty, and where they are stored, if they are."""

    parts: tuple[Entries, ...]
    stored: tuple[Stretch, ...] = ()

    def __len__(self) -> int:
        return sum(map(len, self.parts))

    @property
    def first(self) -> int:
        """The least first number."""
        return int(self.parts[0].major[0])

    @property
    def last(self) -> int:
        """The greatest first number."""
        return int(self.parts[-1].major[-1])

    @cached_property
    def size(self) -> int:
        """The bytes of its rows and numbers."""
        return sum(part.size for part in self.parts)

    @cached_property
    def last_minor(self) -> int:
        """The greatest second number, known of what is stored without a look; FOREVER where it is not."""
        if self.stored:
            known = [part.last_minor for part in self.stored if part.last_minor is not None]
            return max(known) if len(known) == len(self.stored) else FOREVER
        return max(int(part.minor.max()) for part in self.parts)

    def between(self, first: int, last: int) -> list[Entries]:
        """Return what has a first number from one up to, and without, another."""
        found = []
        for part in self.parts:
            if part.major[0] < last and part.major[-1] >= first:
                start, end = np.searchsorted(part.major, [first, last])
                found += [part.slice(start, end)] if start < end else []
        return found

    def count(self, first: int, last: int) -> int:
        """Return how many have a first number from one up to, and without, another."""
        return sum(map(len, self.between(first, last)))

    def within(self, major: Numbers, first: Numbers, last: Numbers) -> list[Entries]:
        """Return what has one of some first numbers, given in order, and a second one in that one's range."""
        found = []
        for part, low, high in self.asked(major):
            indices = spread(*spans(part, major[low:high], first[low:high], last[low:high]))
            found += [part.take(indices)] if len(indices) else []
        return found

    def under(self, major: Numbers) -> list[Entries]:
        """Return what has one of some first numbers, given in order."""
        found = []
        for part, low, high in self.asked(major):
            indices = spread(*stretches(part, major[low:high]))
            found += [part.take(indices)] if len(indices) else []
        return found

    def matches(self, major: Numbers, first: Numbers, last: Numbers, columns: Sequence[str]) -> list[Matches]:
        """Return what is in each range, both ends included, of a first number, these given in order."""
        found = []
        for part, low, high in self.asked(major):
            start, end = closed_spans(part, major[low:high], first[low:high], last[low:high])
            indices = spread(start, end)
            if len(indices):
                rows = part.rows.select(columns).take(pa.array(indices))
                of = np.repeat(np.arange(low, high), np.maximum(end - start, 0))
                found.append(Matches(of, Entries(part.major[indices], part.minor[indices], rows)))
        return found

    def last_until(self, major: Numbers, until: Numbers) -> Numbers:
        """Return the greatest second number up to one of each first one, given in order; NEVER for none."""
        found = np.full(len(major), NEVER)
        for part, low, high in self.asked(major):
            start, end = stretches(part, major[low:high])
            position = beyond(part, start, end, until[low:high]) - 1
            there = np.flatnonzero(position >= start)
            found[low + there] = part.minor[position[there]]  # parts come in order: the last one counts
        return found

    def first_after(self, major: Numbers, after: Numbers) -> Numbers:
        """Return the least second number after one of each first one, given in order; FOREVER for none."""
        found = np.full(len(major), FOREVER)
        for part, low, high in self.asked(major):
            start, end = stretches(part, major[low:high])
            position = beyond(part, start, end, after[low:high])
            there = np.flatnonzero(position < end)
            found[low + there] = np.minimum(found[low + there], part.minor[position[there]])
        return found

    def asked(self, major: Numbers) -> Iterator[tuple[Entries, int, int]]:
        """Yield each part with the span of first numbers, given in order, that it may have."""
        for part in self.parts:
            low, high = int(major.searchsorted(part.major[0])), len(major)
            if low < high and major[-1] > part.major[-1]:
                high = int(major.searchsorted(part.major[-1], side="right"))
            if low < high:
                yield part, low, high

    def slice(self, low: tuple[int, int] | None, high: tuple[int, int] | None) -> list[Entries]:
        """Return the entries from one pair of numbers up to, and without, another; from or to an end."""
        found = []
        for part in self.parts:
            start = 0 if low is None else part.position(*low)
            end = len(part) if high is None else part.position(*high)
            found += [part.slice(start, end)] if start < end else []
        return found


def positions(part: Entries, major: Numbers, minor: Numbers) -> Numbers:
    """Return where each pair of numbers, given in order of the first, is in a part; -1 for one without."""
    if not len(major) or not len(part):
        return np.full(len(major), -1)
    edges = [0, *(np.flatnonzero(major[1:] != major[:-1]) + 1)[:_FEW].tolist(), len(major)]
    # As of spans of time: few first numbers, and many second ones under each, which are looked for at once.
    if len(edges) <= max(3, min(_FEW, len(major) // 8)):
        return np.concatenate(
            [_find_in(part, int(major[low]), minor[low:high]) for low, high in pairwise(edges)]
        )
    at = np.searchsorted(part.major, major)
    at[at == len(part)] = 0
    same = part.major[at] == major
    hit = same & (part.minor[at] == minor)
    found = np.where(hit, at, -1)
    rest = np.flatnonzero(same & ~hit)  # others of the same first number: few, where that is a hash
    if len(rest):
        end = np.searchsorted(part.major, major[rest], side="right")
        at = np.minimum(bisect(part.minor, at[rest], end, minor[rest]), end - 1)
        found[rest] = np.where(part.minor[at] == minor[rest], at, -1)
    return found


def _find_in(part: Entries, major: int, minor: Numbers) -> Numbers:
    """Return the positions of second numbers under one first number; -1 for one without."""
    low, high = np.searchsorted(part.major, major), np.searchsorted(part.major, major, side="right")
    if low == high:
        return np.full(len(minor), -1)
    at = low + np.searchsorted(part.minor[low:high], minor)
    hit = part.minor[np.minimum(at, high - 1)] == minor
    return np.where(hit, at, -1)
