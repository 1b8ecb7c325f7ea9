"""A tally with what its groups have, through changes that are given as Python values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from headwater.operators.tables.tallies import ValueChanges


class Tallied:
    """A tally, and its columns for some groups."""

    def __init__(self, tally: Any, groups: int):
        self.tally, self._ids = tally, np.arange(groups)[::-1].copy()  # in another order than the groups
        self.columns: list[pa.Array] = [
            pa.nulls(groups, field.type)
            if pa.types.is_list(field.type)
            else pa.array([0] * groups, field.type)
            for field in tally.fields
        ]

    def change(self, rows: list[tuple[int, Any]], kind: pa.DataType, sign: int) -> None:
        """Let values enter groups or leave them."""
        values = pa.array([value for _, value in rows], kind)
        of = np.array([group for group, _ in rows], np.int64)
        changes = ValueChanges(self._ids, of, np.full(len(rows), sign), values)
        self.columns = self.tally.changed(self.columns, changes)
        assert [column.type for column in self.columns] == [field.type for field in self.tally.fields]
