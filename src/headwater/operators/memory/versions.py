"""The versions of each key's row: found by the time at which they were valid, forgotten when replaced.

A version is valid from its time until the next one's. Of versions of one time the greatest by all columns
is valid, so it does not matter in which order they came; of equal ones the first to come.

Invariant: for every time that is not before the floor, the version that was valid then is held.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from headwater.operators.event_time import NEVER, Times
from headwater.operators.groups import Flags, Numbers
from headwater.operators.memory.numbered_rows import NOWHERE, NumberedRows
from headwater.operators.memory.rows_by_key_and_time import LITTLE
from headwater.operators.memory.runs import RunMatches, Runs
from headwater.operators.order import order


class RowVersions:
    """Rows by key and by the time from which on they are valid."""

    def __init__(self, schema: pa.Schema):
        self._rows = NumberedRows(schema.empty_table())
        self._runs = Runs()
        self._ends = np.zeros(0, np.bool_)
        self._tidy = 0

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def crowded(self) -> bool:
        """Whether there are twice as many as there were when those without use were last left out."""
        return len(self) > 2 * self._tidy + LITTLE

    def add(self, rows: pa.Table, at: Times, slots: Numbers, ends: Flags) -> None:
        """Add versions of known keys; those that are an end say that from then on there is none."""
        self._runs.add(slots, at, np.arange(len(self), len(self) + len(rows)))
        self._rows.append(rows)
        if len(self) > len(self._ends):
            self._ends = np.append(self._ends, np.zeros(len(self) + LITTLE, np.bool_))
        self._ends[len(self) - len(rows) : len(self)] = ends

    def valid(self, slots: Numbers, at: Times) -> Numbers:
        """Return the number of the version of each key that was valid at a time; NOWHERE for none."""
        valid = np.full(len(slots), NOWHERE)
        known = np.flatnonzero(slots != NOWHERE)
        newest = self._runs.newest(slots[known], at[known])
        known, newest = known[newest != NEVER], newest[newest != NEVER]
        found = self._greatest(self._runs.find(slots[known], newest, newest))
        valid[known[found.query]] = np.where(self._ends[found.number], NOWHERE, found.number)
        return valid

    def next(self, slots: Numbers, after: Times) -> Times:
        """Return the time of the next version of each key after a time; FOREVER where there is none."""
        return self._runs.next(slots, after)

    def take(self, numbers: Numbers, *columns: str) -> pa.Table:
        """Return versions by their numbers, nulls for those that are nowhere; all columns, or some."""
        return self._rows.take(numbers, *columns)

    def since(self, floor: int) -> pa.Table:
        """Return the versions that were valid at a time that is not before the floor, or will be."""
        return self._rows.take(self._useful(floor))

    def tidy(self, floor: int) -> None:
        """Forget the versions that were replaced before the floor."""
        numbers = self._useful(floor)
        kept, new = np.zeros(len(self), np.bool_), np.full(len(self), NOWHERE)
        kept[numbers], new[numbers] = True, np.arange(len(numbers))
        self._runs.keep(kept, new)
        self._ends = self._ends[numbers]
        self._rows = NumberedRows(self._rows.take(numbers))
        self._tidy = len(numbers)

    def slots(self) -> Numbers:
        """Return the keys that versions have."""
        return self._runs.all().slot

    def rekey(self, slots: Numbers) -> None:
        """Give keys new numbers, in the order of the old ones."""
        self._runs.rekey(slots)

    def _greatest(self, matches: RunMatches) -> RunMatches:
        """Return the greatest of the versions that are of one time."""
        if not (np.diff(matches.query) == 0).any():
            return matches
        # The last of equal rows is chosen: backwards, that is the first to come.
        query, number = matches.query[::-1], matches.number[::-1]
        places = order(self._rows.take(number), query)
        last = np.flatnonzero(np.diff(query[places], append=NOWHERE))
        return RunMatches(query[places][last], number[places][last])

    def _useful(self, floor: int) -> Numbers:
        slot, at, number = self._runs.all()
        newest = np.full(slot.max(initial=NOWHERE) + 1, NEVER)
        old = at <= floor
        np.maximum.at(newest, slot[old], at[old])
        # What ended before the floor, and has not begun again, is as if it had never been. At the floor
        # itself another version may still come, and be less than the end.
        lives = np.zeros(len(newest), np.bool_)
        last = old & (at == newest[slot])
        lives[slot[last & (~self._ends[number] | (at == floor))]] = True
        return np.sort(number[~old | (last & lives[slot])])
