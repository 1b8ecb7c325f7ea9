"""Numbers of rows in the order of key and time, so that a key's rows of some span are found at once.

They lie in a few sorted runs. A new run is merged with its neighbour while that is not much larger, by
finding the places of the smaller one's rows in the larger one: nothing is sorted twice.

Invariant: within a run equal keys and times are in the order of their numbers, and the numbers of a run
are all below those of the next, so what is found depends on the rows alone and not on how runs came about.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from headwater.operators.event_time import FOREVER, NEVER, Times
from headwater.operators.groups import Flags, Numbers
from headwater.operators.memory.numbered_rows import NOWHERE


class IndexRun(NamedTuple):
    """Rows by the number of their key, then by time."""

    slot: Numbers
    at: Times
    number: Numbers


class _Sought(NamedTuple):
    """Keys that are looked for, each once and in order: that is several times as fast."""

    slots: Numbers
    of: Numbers


class RunMatches(NamedTuple):
    """Pairs of a query, by its position among those asked, and the number of a row, in that order."""

    query: Numbers
    number: Numbers


class Runs:
    """Numbers of rows, found by key and time."""

    def __init__(self) -> None:
        self._runs: list[IndexRun] = []

    def add(self, slot: Numbers, at: Times, number: Numbers) -> None:
        """Add rows whose numbers are above all others and rise."""
        if not len(slot):
            return
        places = np.lexsort((at, slot))
        self._runs.append(IndexRun(slot[places], at[places], number[places]))
        while len(self._runs) > 1 and len(self._runs[-2].slot) <= 2 * len(self._runs[-1].slot):
            newer, older = self._runs.pop(), self._runs.pop()
            self._runs.append(_merged(older, newer))

    def find(self, slot: Numbers, least: Times, most: Times) -> RunMatches:
        """Return the rows of each key that are within a span of time, both ends included."""
        sought = _sought(slot)
        found = [_between(run, sought, least, most) for run in self._runs]
        if not found:
            return RunMatches(np.empty(0, np.int64), np.empty(0, np.int64))
        query, number = (np.concatenate(part) for part in zip(*found, strict=True))
        # Both fit into one number, which sorts faster than two.
        width = int(number.max(initial=0)) + 1
        return RunMatches(*np.divmod(np.sort(query * width + number), width))

    def any(self, slot: Numbers, least: Times, most: Times) -> Flags:
        """Tell for which keys there is a row within a span of time, both ends included."""
        there, sought = np.zeros(len(slot), np.bool_), _sought(slot)
        for run in self._runs:
            start, end = _span(run, sought, least, most)
            there |= start < end
        return there

    def newest(self, slot: Numbers, until: Times) -> Times:
        """Return the time of each key's newest row that is not after a time; NEVER where there is none."""
        newest, sought = np.full(len(slot), NEVER), _sought(slot)
        for run in self._runs:
            low, high = _of_slots(run, sought)
            last = _bisected(run.at, until, low, high, beyond=True) - 1
            there = np.flatnonzero(last >= low)
            newest[there] = np.maximum(newest[there], run.at[last[there]])
        return newest

    def next(self, slot: Numbers, after: Times) -> Times:
        """Return the time of each key's first row that is after a time; FOREVER where there is none."""
        first, sought = np.full(len(slot), FOREVER), _sought(slot)
        for run in self._runs:
            low, high = _of_slots(run, sought)
            position = _bisected(run.at, after, low, high, beyond=True)
            there = np.flatnonzero(position < high)
            first[there] = np.minimum(first[there], run.at[position[there]])
        return first

    def all(self) -> IndexRun:
        """Return all rows, run after run."""
        none = np.empty(0, np.int64)
        return IndexRun(
            *(np.concatenate(parts) for parts in zip(IndexRun(none, none, none), *self._runs, strict=True))
        )

    def keep(self, retained: Flags, numbers: Numbers) -> None:
        """Keep some rows only; they get new numbers, in the order of the old ones."""
        runs = [IndexRun(*(part[retained[run.number]] for part in run)) for run in self._runs]
        self._runs = [run._replace(number=numbers[run.number]) for run in runs if len(run.slot)]

    def rekey(self, slots: Numbers) -> None:
        """Give keys new numbers, in the order of the old ones."""
        self._runs = [run._replace(slot=slots[run.slot]) for run in self._runs]


def _merged(older: IndexRun, newer: IndexRun) -> IndexRun:
    """Put the rows of one run behind the equal ones of another."""
    low, high = _of_slots(older, _sought(newer.slot, ordered=True))
    position = _bisected(older.at, newer.at, low, high, beyond=True) + np.arange(len(newer.slot))
    older_rows = np.ones(len(older.slot) + len(newer.slot), np.bool_)
    older_rows[position] = False
    return IndexRun(*(_put(older_rows, position, *parts) for parts in zip(older, newer, strict=True)))


def _put(older_rows: Flags, position: Numbers, older: Numbers, newer: Numbers) -> Numbers:
    both = np.empty(len(older_rows), np.int64)
    both[older_rows] = older
    both[position] = newer
    return both


def _between(run: IndexRun, sought: _Sought, least: Times, most: Times) -> RunMatches:
    start, end = _span(run, sought, least, most)
    count = end - start
    query = np.repeat(np.arange(len(least)), count)
    before = np.cumsum(count) - count
    return RunMatches(query, run.number[np.arange(len(query)) + np.repeat(start - before, count)])


def _span(run: IndexRun, sought: _Sought, least: Times, most: Times) -> tuple[Numbers, Numbers]:
    """Return where the rows of each key within a span of time begin and end in a run."""
    low, high = _of_slots(run, sought)
    start = _bisected(run.at, least, low, high, beyond=False)
    return start, _bisected(run.at, most, start, high, beyond=True)


def _sought(slot: Numbers, ordered: bool = False) -> _Sought:
    if ordered:
        first = np.diff(slot, prepend=NOWHERE) != 0
        return _Sought(slot[first], np.cumsum(first) - 1)
    return _Sought(*np.unique(slot, return_inverse=True))


def _of_slots(run: IndexRun, sought: _Sought) -> tuple[Numbers, Numbers]:
    """Return where the rows of each key begin and end in a run."""
    low = np.searchsorted(run.slot, sought.slots)
    there = np.flatnonzero(run.slot[np.minimum(low, len(run.slot) - 1)] == sought.slots)
    high = low.copy()
    high[there] = np.searchsorted(run.slot, sought.slots[there], side="right")
    return low[sought.of], high[sought.of]


def _bisected(at: Times, value: Times, low: Numbers, high: Numbers, beyond: bool) -> Numbers:
    """Return the first place of each stretch that is not before a time, or that is beyond it."""
    low, high = low.copy(), high.copy()
    open_ = np.flatnonzero(low < high)
    while len(open_):
        middle = (low[open_] + high[open_]) >> 1
        before = at[middle] <= value[open_] if beyond else at[middle] < value[open_]
        low[open_[before]] = middle[before] + 1
        high[open_[~before]] = middle[~before]
        open_ = open_[low[open_] < high[open_]]
    return low
