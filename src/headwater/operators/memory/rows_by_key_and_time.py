"""Rows that wait for others of their key: found by key and time, and forgotten in the order of time.

What is forgotten is taken out of reach at once, and out of memory when it is as much as what is kept.

Invariant: a row has a number, rows that came later have greater ones, and those of an older time than
what was dropped are neither told nor stored again. A number is good until the next ``tidy``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable
from itertools import count, repeat
from typing import Protocol

import numpy as np
import pyarrow as pa

from headwater.operators.event_time import Times
from headwater.operators.groups import Flags, Keys, Numbers
from headwater.operators.memory.numbered_rows import NOWHERE, NumberedRows
from headwater.operators.memory.runs import RunMatches, Runs
from headwater.operators.memory.timeline import Timeline

LITTLE = 1024
_NUMBER = pa.schema([("number", pa.int64())])


class KeySlots:
    """Numbers for keys."""

    def __init__(self) -> None:
        self._slots: dict[Hashable, int] = _numbering(0)

    def __len__(self) -> int:
        return len(self._slots)

    def of(self, keys: Keys) -> Numbers:
        """Return the number of each key; new ones get the next."""
        return np.fromiter(map(self._slots.__getitem__, keys.tolist()), np.int64, len(keys))

    def find(self, keys: Keys) -> Numbers:
        """Return the number of each key; NOWHERE for a new one."""
        return np.fromiter(map(self._slots.get, keys.tolist(), repeat(NOWHERE)), np.int64, len(keys))

    def keep(self, used: Numbers) -> Numbers:
        """Forget all keys but some, given in order; return the new number by the old one."""
        numbers = np.full(len(self), NOWHERE)
        numbers[used] = np.arange(len(used))
        keys = np.fromiter(self._slots, np.object_, len(self))[used]
        self._slots = _numbering(len(used))
        self._slots.update(zip(keys.tolist(), range(len(used)), strict=True))
        return numbers


def _numbering(start: int) -> dict[Hashable, int]:
    """Return a dict that gives each key it does not know the next number."""
    return defaultdict(count(start).__next__)


class KeyedRows(Protocol):
    """What holds rows under the numbers of their keys."""

    def slots(self) -> Numbers:
        """Return the keys that rows have."""

    def rekey(self, slots: Numbers) -> None:
        """Give keys new numbers, in the order of the old ones."""


class RowsByKeyAndTime:
    """Rows of many keys, each with a time and a number that is noted of it, at first zero."""

    def __init__(self, schema: pa.Schema):
        self._rows = NumberedRows(schema.empty_table())
        self._runs = Runs()
        self._times = Timeline(_NUMBER)
        self._notes = np.zeros(LITTLE, np.int64)

    def __len__(self) -> int:
        return len(self._times)

    @property
    def crowded(self) -> bool:
        """Whether more has been forgotten than is kept."""
        return len(self._rows) > 2 * len(self) + LITTLE

    def add(self, rows: pa.Table, at: Times, slots: Numbers) -> Numbers:
        """Add rows with the numbers of their keys, NOWHERE for one that is never looked for."""
        numbers = np.arange(len(self._rows), len(self._rows) + len(rows))
        known = slots != NOWHERE
        self._rows.append(rows)
        self._runs.add(slots[known], at[known], numbers[known])
        self._times.add(pa.table([pa.array(numbers)], schema=_NUMBER), at)
        if len(self._rows) > len(self._notes):
            self._notes = np.append(self._notes, np.zeros(len(self._rows), np.int64))
        return numbers

    def find(self, slots: Numbers, least: Times, most: Times) -> RunMatches:
        """Return the rows of each key that are within a span of time, both ends included."""
        known = np.flatnonzero(slots != NOWHERE)
        query, number = self._runs.find(slots[known], least[known], most[known])
        return RunMatches(known[query], number)

    def any(self, slots: Numbers, least: Times, most: Times) -> Flags:
        """Tell for which keys there is a row within a span of time, both ends included."""
        there: Flags = slots != NOWHERE
        there[there] = self._runs.any(slots[there], least[there], most[there])
        return there

    def note(self, numbers: Numbers, notes: int | Numbers) -> None:
        """Note something of rows."""
        self._notes[numbers] = notes

    def notes(self, numbers: Numbers) -> Numbers:
        """Return what is noted of rows."""
        return self._notes[numbers]

    def take(self, numbers: Numbers, *columns: str) -> pa.Table:
        """Return rows by their numbers, nulls for those that are nowhere; all columns, or some."""
        return self._rows.take(numbers, *columns)

    def until(self, before: int) -> Numbers:
        """Return the numbers of the rows from before a time."""
        return _sorted(self._times.until(before))

    def numbers(self) -> Numbers:
        """Return the numbers of all rows."""
        return _sorted(self._times.rows())

    def drop(self, before: int) -> None:
        """Forget the rows from before a time."""
        self._times.drop(before)

    def first(self) -> int | None:
        """Return the earliest time."""
        return self._times.first()

    def slots(self) -> Numbers:
        """Return the keys that rows have; after ``tidy``."""
        return self._runs.all().slot

    def tidy(self) -> None:
        """Give back the memory of what was forgotten; rows get new numbers, in the order of the old ones."""
        numbers = self.numbers()
        kept, new = self._flags(numbers), np.full(len(self._rows), NOWHERE)
        new[numbers] = np.arange(len(numbers))
        self._runs.keep(kept, new)
        self._times = self._times.mapped(lambda rows: _renumbered(rows, new))
        self._notes = np.append(self._notes[numbers], np.zeros(LITTLE, np.int64))
        self._rows = NumberedRows(self._rows.take(numbers))

    def rekey(self, slots: Numbers) -> None:
        """Give keys new numbers, in the order of the old ones; after ``tidy``."""
        self._runs.rekey(slots)

    def _flags(self, numbers: Numbers) -> Flags:
        kept = np.zeros(len(self._rows), np.bool_)
        kept[numbers] = True
        return kept


def tidied(slots: KeySlots, *holders: RowsByKeyAndTime) -> None:
    """Give back memory where more has been forgotten than is kept."""
    forgotten = len(slots) > 2 * sum(map(len, holders)) + LITTLE
    for holder in holders:
        if holder.crowded or forgotten:
            holder.tidy()
    if forgotten:
        rekeyed(slots, *holders)


def rekeyed(slots: KeySlots, *holders: KeyedRows) -> None:
    """Forget the keys of which no row is held any more."""
    numbers = slots.keep(np.unique(np.concatenate([holder.slots() for holder in holders])))
    for holder in holders:
        holder.rekey(numbers)


def _sorted(rows: pa.Table) -> Numbers:
    numbers: Numbers = np.sort(rows.column("number").to_numpy())
    return numbers


def _renumbered(rows: pa.Table, numbers: Numbers) -> pa.Table:
    return pa.table([pa.array(numbers[rows.column("number").to_numpy()])], schema=_NUMBER)
