"""The rows of a table as they are now, by primary key, and by what they are joined or grouped by.

A row is in a slot, which it keeps while its key is there; the row itself is in numbered rows, under a number
that tells its age. A row that was replaced stays there until there are more of those than of the
others. What rows are joined or grouped by is given by the caller as a number, their index key: rows of one
index key are found together.

Invariant: ages are in the order in which the rows were put, also after a restart; so rows that are
sorted by their ages come in an order that does not depend on slots.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from headwater.operators.groups import Flags, Keys, Numbers
from headwater.operators.memory.int_multimap import IntMultimap
from headwater.operators.memory.numbered_rows import NOWHERE, NumberedRows
from headwater.operators.memory.slots import Slots, sized
from headwater.operators.table_changes import identical
from headwater.record import DELETED

_LITTLE = 1024


class Delta(NamedTuple):
    """What becomes of some keys: the slot of each, the index key it had and the one it will have.

    An index key is NOWHERE for a row that meets no other; ``was`` and ``is_`` tell whether there is a row.
    """

    slots: Numbers
    before: Numbers
    after: Numbers
    was: Flags
    is_: Flags


class IndexedTable:
    """Rows by primary key, with an index by what they are joined or grouped by."""

    def __init__(self, schema: pa.Schema):
        self._rows = NumberedRows(schema.empty_table())
        self._slots = Slots()
        self._ages = np.empty(0, np.int64)
        self._index_keys = np.empty(0, np.int64)
        self._live = 0
        self.index = IntMultimap()

    def __len__(self) -> int:
        return self._live

    def find(self, keys: Keys) -> Numbers:
        """Return the slot of each key; NOWHERE for one that is not there."""
        return self._slots.find(keys)

    def ages(self, slots: Numbers) -> Numbers:
        """Return the age of the row in each slot; NOWHERE where there is none."""
        return np.where(slots == NOWHERE, NOWHERE, self._ages[slots]) if len(self._ages) else slots

    def index_keys(self, slots: Numbers) -> Numbers:
        """Return the index key of the row in each slot."""
        return np.where(slots == NOWHERE, NOWHERE, self._index_keys[slots]) if len(self._ages) else slots

    def take(self, ages: Numbers, *columns: str) -> pa.Table:
        """Return rows by their ages, nulls for those that are nowhere; all columns, or some."""
        return self._rows.take(ages, *columns)

    def effective(self, slots: Numbers, deleted: Flags, rows: pa.Table) -> Numbers:
        """Return which changes are ones: not the deletion of what is not there, nor a row as it is."""
        known = np.flatnonzero((slots != NOWHERE) & ~deleted)
        changed = (slots != NOWHERE) | ~deleted
        compared = rows.drop_columns([DELETED])
        old = self.take(self.ages(slots[known]), *compared.column_names)
        changed[known] = ~identical(compared.take(pa.array(known)), old)
        return np.flatnonzero(changed)

    def delta(self, keys: Keys, slots: Numbers, after: Numbers, deleted: Flags) -> Delta:
        """Tell what becomes of keys, in the slots found for them; new ones get a slot."""
        was = slots != NOWHERE
        slots = slots.copy()
        slots[~was] = self._slots.give(keys[~was])
        self._ages = sized(self._ages, len(self._slots), NOWHERE)
        self._index_keys = sized(self._index_keys, len(self._slots), NOWHERE)
        return Delta(slots, self._index_keys[slots], np.where(deleted, NOWHERE, after), was, ~deleted)

    def put(self, delta: Delta, rows: pa.Table) -> None:
        """Change the rows of some keys: the rows given are those of the keys that have one then."""
        self._move(delta)
        start = len(self._rows)
        self._ages[delta.slots] = NOWHERE
        self._ages[delta.slots[delta.is_]] = np.arange(start, start + len(rows))
        self._rows.append(rows)
        self._live += len(rows) - int(delta.was.sum())

    def tidy(self, delta: Delta) -> None:
        """Give back the slots of keys that are gone, and the memory of rows that were replaced."""
        self._slots.drop(delta.slots[~delta.is_])
        if len(self._rows) > 2 * self._live + _LITTLE:
            slots = self._by_age()
            self._rows = NumberedRows(self._rows.take(self._ages[slots]))
            self._ages[slots] = np.arange(len(slots))

    def rows(self) -> pa.Table:
        """Return all rows, by their age."""
        return self._rows.take(self._ages[self._by_age()])

    def _move(self, delta: Delta) -> None:
        slots, before, after = delta.slots, delta.before, delta.after
        leaving = (before != after) & (before != NOWHERE)
        entering = (before != after) & (after != NOWHERE)
        self.index.remove(before[leaving], slots[leaving])
        self.index.add(after[entering], slots[entering])
        self._index_keys[slots] = after

    def _by_age(self) -> Numbers:
        slots = np.flatnonzero(self._ages != NOWHERE)
        return slots[np.argsort(self._ages[slots])]
