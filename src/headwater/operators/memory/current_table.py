"""A table as it is now: one row for each key, put there, replaced and taken away again.

Invariant: at most half of what is held, and a little, is out of date: rows as well as keys.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from headwater.operators.groups import Numbers
from headwater.operators.memory.numbered_rows import NOWHERE, NumberedRows
from headwater.operators.memory.rows_by_key_and_time import LITTLE, KeySlots


class CurrentTable:
    """Rows by the number of their key."""

    def __init__(self, schema: pa.Schema):
        self.slots = KeySlots()
        self._rows = NumberedRows(schema.empty_table())
        self._numbers = np.full(LITTLE, NOWHERE)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def find(self, slots: Numbers) -> Numbers:
        """Return the number of each key's row; NOWHERE where there is none."""
        numbers = np.full(len(slots), NOWHERE)
        known = (slots != NOWHERE) & (slots < len(self._numbers))
        numbers[known] = self._numbers[slots[known]]
        return numbers

    def take(self, numbers: Numbers, *columns: str) -> pa.Table:
        """Return rows by their numbers, nulls for those that are nowhere; all columns, or some."""
        return self._rows.take(numbers, *columns)

    def put(self, slots: Numbers, rows: pa.Table) -> None:
        """Put rows in place of those of their keys, each key once."""
        self._change(slots, np.arange(len(self._rows), len(self._rows) + len(rows)))
        self._rows.append(rows)

    def remove(self, slots: Numbers) -> None:
        """Take away the rows of some keys, each once."""
        self._change(slots, np.full(len(slots), NOWHERE))

    def rows(self) -> pa.Table:
        """Return all rows, in the order in which their keys came."""
        return self._rows.take(self._numbers[self._used()])

    def tidy(self) -> None:
        """Give back the memory of what is gone, if that is more than what is there."""
        if max(len(self._rows), len(self.slots)) <= 2 * len(self) + LITTLE:
            return
        used = self._used()
        self._rows = NumberedRows(self._rows.take(self._numbers[used]))
        self.slots.keep(used)
        self._numbers = np.append(np.arange(len(used)), np.full(LITTLE, NOWHERE))

    def _change(self, slots: Numbers, numbers: Numbers) -> None:
        if len(self.slots) > len(self._numbers):
            self._numbers = np.append(self._numbers, np.full(len(self.slots), NOWHERE))
        self._count += int((numbers != NOWHERE).sum()) - int((self._numbers[slots] != NOWHERE).sum())
        self._numbers[slots] = numbers

    def _used(self) -> Numbers:
        return np.flatnonzero(self._numbers != NOWHERE)
