"""Rows that are only ever added, each found again by its number, however many there are.

Arrow's own ``take`` joins all chunks of a table first, which costs as much as the whole state. Here
small tables are merged into larger ones as they come, and each is asked for its own rows.

Invariant: a row keeps its number.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from headwater.operators.groups import Numbers
from headwater.operators.order import stable

NOWHERE = -1
"""The number of a row that is not there: taking it gives a row of nulls."""


class NumberedRows:
    """Numbered rows."""

    def __init__(self, rows: pa.Table):
        self._parts = [rows]
        self._starts = [0]

    def __len__(self) -> int:
        return self._starts[-1] + len(self._parts[-1])

    def append(self, rows: pa.Table) -> None:
        """Add rows, which get the next numbers."""
        if not len(rows):
            return
        self._starts.append(len(self))
        self._parts.append(rows)
        while len(self._parts) > 1 and len(self._parts[-2]) <= 2 * len(self._parts[-1]):
            newer, older = self._parts.pop(), self._parts.pop()
            self._parts.append(pa.concat_tables([older, newer]).combine_chunks())
            self._starts.pop()

    def take(self, numbers: Numbers, *columns: str) -> pa.Table:
        """Return rows by their numbers, in that order; all their columns, or some."""
        part = np.searchsorted(self._starts, numbers, side="right") - 1
        owners = [owner for owner in range(NOWHERE, len(self._parts)) if (part == owner).any()] or [NOWHERE]
        pieces = [self._piece(owner, numbers[part == owner], columns) for owner in owners]
        if len(pieces) == 1:
            return pieces[0]
        place = np.empty(len(numbers), np.int64)
        place[stable(part)] = np.arange(len(numbers))
        return pa.concat_tables(pieces).combine_chunks().take(pa.array(place))

    def _piece(self, owner: int, numbers: Numbers, columns: tuple[str, ...]) -> pa.Table:
        rows = self._parts[max(owner, 0)]
        rows = rows.select(columns) if columns else rows
        if owner == NOWHERE:
            return rows.take(pa.nulls(len(numbers), pa.int64()))
        return rows.take(pa.array(numbers - self._starts[owner]))
