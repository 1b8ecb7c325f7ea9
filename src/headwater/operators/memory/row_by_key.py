"""One row for each key: the newest that was put there.

A row that has been replaced stays in memory until there are more of those than of the others; then
they are copied without it. So the cost of a step follows its rows, and not the number of keys.

Invariant: at most half of what is held, and a little, is out of date.
"""

from __future__ import annotations

from collections.abc import Hashable
from itertools import repeat

import numpy as np
import pyarrow as pa

from headwater.operators.groups import Keys, Numbers
from headwater.operators.memory.numbered_rows import NOWHERE, NumberedRows

_LITTLE = 1024


class RowByKey:
    """Rows by key, in the order in which the keys first came; its place among them is a key's slot."""

    def __init__(self, schema: pa.Schema):
        self._rows = NumberedRows(schema.empty_table())
        self._slots: dict[Hashable, int] = {}
        self._numbers = np.empty(_LITTLE, np.int64)

    def __len__(self) -> int:
        return len(self._slots)

    def find(self, keys: Keys) -> Numbers:
        """Return the slot of each key; NOWHERE for a new one."""
        return np.fromiter(map(self._slots.get, keys.tolist(), repeat(NOWHERE)), np.int64, len(keys))

    def take(self, slots: Numbers, *columns: str) -> pa.Table:
        """Return the rows of some slots, nulls for those that are nowhere; all columns, or some."""
        numbers = np.where(slots == NOWHERE, NOWHERE, self._numbers[slots])
        return self._rows.take(numbers, *columns)

    def put(self, keys: Keys, slots: Numbers, rows: pa.Table) -> None:
        """Put the rows of some keys, each key once, in place of those in the slots found for them."""
        start, slots = len(self._rows), self._filled(keys, slots)
        self._numbers[slots] = np.arange(start, start + len(rows))
        self._rows.append(rows)
        if len(self._rows) > 2 * len(self) + _LITTLE:
            self._rows = NumberedRows(self.rows())
            self._numbers[: len(self)] = np.arange(len(self))

    def rows(self) -> pa.Table:
        """Return the rows of all keys."""
        return self._rows.take(self._numbers[: len(self)])

    def _filled(self, keys: Keys, slots: Numbers) -> Numbers:
        """Give new keys the next slots."""
        new = slots == NOWHERE
        slots = np.where(new, len(self) - 1 + np.cumsum(new), slots)
        # A look into a large dict is what a step costs most: known keys need no second one.
        self._slots.update(zip(keys[new].tolist(), slots[new].tolist(), strict=True))
        if len(self) > len(self._numbers):
            self._numbers = np.concatenate([self._numbers, np.empty(len(self), np.int64)])
        return slots
