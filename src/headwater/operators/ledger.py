"""Rows that wait for others of their key: found by key and time, and forgotten in the order of time.

What is forgotten is taken out of reach at once, and out of memory when it is as much as what is kept.

Invariant: a row has a number, rows that came later have greater ones, and those of an older time than
what was dropped are neither told nor stored again. A number is good until the next ``tidy``.
"""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np
import pyarrow as pa

from headwater.operators.event_time import Times
from headwater.operators.groups import Keys, Numbers
from headwater.operators.pile import NOWHERE, Pile
from headwater.operators.runs import Flags, Found, Runs
from headwater.operators.timeline import Timeline

_LITTLE = 1024
_NUMBER = pa.schema([("number", pa.int64())])


class Slots:
    """Numbers for keys."""

    def __init__(self) -> None:
        self._slots: dict[Hashable, int] = {}

    def __len__(self) -> int:
        return len(self._slots)

    def of(self, keys: Keys) -> Numbers:
        """Return the number of each key; new ones get the next."""
        slots = self._slots
        found = [slots.setdefault(key, len(slots)) for key in keys.tolist()]
        return np.array(found, np.int64)

    def keep(self, used: Numbers) -> Numbers:
        """Forget all keys but some, given in order; return the new number by the old one."""
        numbers = np.full(len(self), NOWHERE)
        numbers[used] = np.arange(len(used))
        keys = np.fromiter(self._slots, np.object_, len(self))[used]
        self._slots = dict(zip(keys.tolist(), range(len(used)), strict=True))
        return numbers


class Ledger:
    """Rows of many keys, each with a time and a mark that it can be given."""

    def __init__(self, schema: pa.Schema):
        self._pile = Pile(schema.empty_table())
        self._runs = Runs()
        self._times = Timeline(_NUMBER)
        self._marked = np.zeros(_LITTLE, np.bool_)

    def __len__(self) -> int:
        return len(self._times)

    @property
    def crowded(self) -> bool:
        """Whether more has been forgotten than is kept."""
        return len(self._pile) > 2 * len(self) + _LITTLE

    def add(self, rows: pa.Table, at: Times, slots: Numbers) -> Numbers:
        """Add rows with the numbers of their keys, NOWHERE for one that is never looked for."""
        numbers = np.arange(len(self._pile), len(self._pile) + len(rows))
        known = slots != NOWHERE
        self._pile.append(rows)
        self._runs.add(slots[known], at[known], numbers[known])
        self._times.add(pa.table([pa.array(numbers)], schema=_NUMBER), at)
        if len(self._pile) > len(self._marked):
            self._marked = np.concatenate([self._marked, np.zeros(len(self._pile), np.bool_)])
        return numbers

    def find(self, slots: Numbers, least: Times, most: Times) -> Found:
        """Return the rows of each key that are within a span of time, both ends included."""
        known = np.flatnonzero(slots != NOWHERE)
        place, number = self._runs.find(slots[known], least[known], most[known])
        return Found(known[place], number)

    def newest(self, slots: Numbers, until: Times) -> Times:
        """Return the time of each key's newest row that is not after a time; NEVER where there is none."""
        return self._runs.newest(slots, until)

    def mark(self, numbers: Numbers) -> None:
        """Give rows the mark."""
        self._marked[numbers] = True

    def marked(self, numbers: Numbers) -> Flags:
        """Tell which rows have the mark."""
        return self._marked[numbers]

    def take(self, numbers: Numbers, *columns: str) -> pa.Table:
        """Return rows by their numbers, nulls for those that are nowhere; all columns, or some."""
        return self._pile.take(numbers, *columns)

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
        """Return the keys that rows have."""
        kept = self._kept(self.numbers())
        run = self._runs.whole()
        return np.unique(run.slot[kept[run.number]])

    def tidy(self, slots: Numbers) -> None:
        """Give back the memory of what was forgotten; keys get new numbers, in the order of the old ones."""
        numbers, times = self.numbers(), self._times
        kept, new = self._kept(numbers), np.full(len(self._pile), NOWHERE)
        new[numbers] = np.arange(len(numbers))
        self._runs.keep(kept, new, slots)
        self._times = times.mapped(lambda rows: _renumbered(rows, new))
        self._marked = np.append(self._marked[numbers], np.zeros(_LITTLE, np.bool_))
        self._pile = Pile(self._pile.take(numbers))

    def _kept(self, numbers: Numbers) -> Flags:
        kept = np.zeros(len(self._pile), np.bool_)
        kept[numbers] = True
        return kept


def tidied(slots: Slots, *ledgers: Ledger) -> None:
    """Give back memory where more has been forgotten than is kept."""
    rows = sum(map(len, ledgers))
    if any(ledger.crowded for ledger in ledgers) or len(slots) > 2 * rows + _LITTLE:
        used = np.unique(np.concatenate([ledger.slots() for ledger in ledgers]))
        numbers = slots.keep(used)
        for ledger in ledgers:
            ledger.tidy(numbers)


def _sorted(rows: pa.Table) -> Numbers:
    numbers: Numbers = np.sort(rows.column("number").to_numpy())
    return numbers


def _renumbered(rows: pa.Table, numbers: Numbers) -> pa.Table:
    return pa.table([pa.array(numbers[rows.column("number").to_numpy()])], schema=_NUMBER)
