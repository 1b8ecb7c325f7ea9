"""Rows with two numbers each, by which they are sorted and found: what runs are made of.

Invariant: within sorted entries each pair of numbers is there once; where rows are not merged, those of one
pair are in the order in which they came.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from headwater.operators.event_time import FOREVER
from headwater.operators.groups import Flags, Numbers

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

    @cached_property
    def size(self) -> int:
        """The bytes of its rows and numbers."""
        return 16 * len(self) + int(self.rows.nbytes)

    def take(self, indices: Numbers) -> Entries:
        """Return some of the entries."""
        return Entries(self.major[indices], self.minor[indices], self.rows.take(pa.array(indices)))

    def only(self, chosen: Flags) -> Entries:
        """Return the entries that are chosen."""
        return self if chosen.all() else self.take(np.flatnonzero(chosen))

    def slice(self, start: int, end: int) -> Entries:
        """Return the entries from one position to another."""
        return Entries(self.major[start:end], self.minor[start:end], self.rows.slice(start, end - start))

    def position(self, major: int, minor: int) -> int:
        """Return where a pair of numbers is, or would be, among sorted entries."""
        low, high = (int(np.searchsorted(self.major, major, side)) for side in ("left", "right"))
        return low + int(np.searchsorted(self.minor[low:high], minor))


def no_entries(rows: pa.Table) -> Entries:
    """Return entries without rows, for a table that has none."""
    return Entries(np.empty(0, np.int64), np.empty(0, np.int64), rows)


def newest(rows: pa.Table, groups: Numbers, count: int) -> pa.Table:
    """Merge rows so that of several the one counts that came last."""
    last = np.empty(count, np.int64)
    last[groups] = np.arange(len(groups))  # of several, the last is assigned
    return rows.take(pa.array(last))


def merged(pieces: list[Entries], merge: Merge | None) -> Entries:
    """Return entries sorted by their numbers, those of equal numbers merged; without a merge all stay."""
    whole = joined(pieces)
    rows, indices = whole.rows.combine_chunks(), arranged(whole.major, whole.minor)
    major, minor = whole.major[indices], whole.minor[indices]
    new = opening(major, minor)
    if merge is None or new.all():
        in_order = (indices[1:] > indices[:-1]).all()
        return Entries(major, minor, rows if in_order else rows.take(pa.array(indices)))
    if merge is newest:  # the last of each, taken at once
        last = np.append(new[1:], True)
        return Entries(major[last], minor[last], rows.take(pa.array(indices[last])))
    rows = merge(rows.take(pa.array(indices)), np.cumsum(new) - 1, int(new.sum()))
    return Entries(major[new], minor[new], rows)


def joined(pieces: Sequence[Entries]) -> Entries:
    """Return entries one after the other, as they come."""
    if len(pieces) == 1:
        return pieces[0]
    return Entries(
        np.concatenate([piece.major for piece in pieces]),
        np.concatenate([piece.minor for piece in pieces]),
        pa.concat_tables([piece.rows for piece in pieces]),
    )


def arranged(major: Numbers, minor: Numbers) -> Numbers:
    """Return the indices of pairs of numbers in order; equal ones stay in theirs."""
    if not len(major):
        return np.empty(0, np.int64)
    width = int(minor.max()) - int(minor.min()) + 1
    if (int(major.max()) - int(major.min()) + 1) * width <= FOREVER:
        # As one number: that is sorted once, and fast where it is of a few sorted runs.
        return np.argsort((major - major.min()) * width + (minor - minor.min()), kind="stable")
    indices = np.argsort(major, kind="stable")  # hashes: the second one decides hardly ever
    ordered = major[indices]
    tied = ordered[1:] == ordered[:-1]
    if not (minor[indices[:-1][tied]] > minor[indices[1:][tied]]).any():
        return indices
    ranks = np.empty(len(major), np.int64)
    ranks[indices] = np.cumsum(np.append(False, ~tied))
    return _arranged_ranks(ranks, minor, width)


def _arranged_ranks(ranks: Numbers, minor: Numbers, width: int) -> Numbers:
    """Return the indices of pairs of which the first are below their count: as one number they are small."""
    if len(ranks) * width > FOREVER:
        distinct_minor, minor = np.unique(minor, return_inverse=True)
        width = len(distinct_minor)
    return np.argsort(ranks * width + (minor - minor.min()), kind="stable")


def opening(major: Numbers, minor: Numbers) -> Flags:
    """Tell of sorted pairs of numbers which are the first of those that are equal."""
    return np.append(True, (major[1:] != major[:-1]) | (minor[1:] != minor[:-1]))[: len(major)]


def distinct(major: Numbers, minor: Numbers) -> tuple[Numbers, Numbers]:
    """Return distinct pairs of numbers, in their order."""
    indices = arranged(major, minor)
    major, minor = major[indices], minor[indices]
    new = opening(major, minor)
    return major[new], minor[new]


def spans(entries: Entries, major: Numbers, first: Numbers, last: Numbers) -> tuple[Numbers, Numbers]:
    """Return where, in sorted entries, the range of second numbers of each first number is."""
    low, high = stretches(entries, major)
    return bisect(entries.minor, low, high, first), bisect(entries.minor, low, high, last)


def closed_spans(entries: Entries, major: Numbers, first: Numbers, last: Numbers) -> tuple[Numbers, Numbers]:
    """Return where, in sorted entries, the range of second numbers of each first one is, ends included."""
    low, high = stretches(entries, major)
    return bisect(entries.minor, low, high, first), beyond(entries, low, high, last)


def stretches(entries: Entries, major: Numbers) -> tuple[Numbers, Numbers]:
    """Return where, in sorted entries, each first number begins and ends."""
    low = np.searchsorted(entries.major, major)
    high = low.copy()
    if not len(entries):
        return low, high
    there = np.flatnonzero(entries.major[np.minimum(low, len(entries) - 1)] == major)
    high[there] = np.searchsorted(entries.major, major[there], side="right")
    return low, high


def beyond(entries: Entries, low: Numbers, high: Numbers, last: Numbers) -> Numbers:
    """Return the first position, of some from low to high, whose second number is after the last one."""
    return np.where(last == FOREVER, high, bisect(entries.minor, low, high, last + 1))


def spread(starts: Numbers, ends: Numbers) -> Numbers:
    """Return all numbers of some ranges, range by range."""
    lengths = np.maximum(ends - starts, 0)
    before = np.cumsum(lengths) - lengths
    return np.repeat(starts - before, lengths) + np.arange(lengths.sum())


def bisect(values: Numbers, low: Numbers, high: Numbers, wanted: Numbers) -> Numbers:
    """Return the first position, of some from low to high, whose value is not before the wanted one."""
    while (more := low < high).any():
        middle = np.where(more, (low + high) >> 1, 0)
        less = more & (values[middle] < wanted)
        low = np.where(less, middle + 1, low)
        high = np.where(more & ~less, middle, high)
    return low
