"""One row for each key: the newest that was put there, until it is removed.

Invariant: what is found for a key is what was put, or removed, last.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from headwater.operators.groups import Flags
from headwater.operators.memory.entries import Entries, newest
from headwater.operators.memory.key_hash import KeyHashes
from headwater.operators.memory.sorted_runs import FoundRows, SortedRuns


class RowByKey:
    """Rows by key."""

    def __init__(self, schema: pa.Schema):
        self._names = schema.names
        self._removed = "_removed"
        while self._removed in self._names:  # a column of the user's may have any name
            self._removed += "_"
        fields = [field.with_nullable(True) for field in schema]
        self._schema = pa.schema([*fields, pa.field(self._removed, pa.bool_())])
        self.runs = SortedRuns(self._schema.empty_table(), newest, self._is_removed)

    def find(self, keys: KeyHashes, *columns: str) -> FoundRows:
        """Return which keys have a row, and the rows, nulls for the others; all columns, or some."""
        names = columns or tuple(self._names)
        found = self.runs.find(*keys, *names, self._removed)
        rows, removed = found.rows.select(list(names)), self._is_removed(found.rows)
        known = found.known & ~removed
        if removed.any():
            rows = rows.take(pa.array(np.arange(len(known)), mask=removed))
        return FoundRows(known, rows)

    def put(self, keys: KeyHashes, rows: pa.Table) -> None:
        """Put the rows of some keys, each key once, in place of those that they have."""
        self._add(keys, rows, removed=False)

    def remove(self, keys: KeyHashes) -> None:
        """Take away the rows of some keys."""
        empty = self._schema.empty_table().select(self._names)
        self._add(keys, empty.take(pa.nulls(len(keys.high), pa.int64())), removed=True)

    def rows(self) -> pa.Table:
        """Return the rows of all keys: all of them at once, in memory."""
        rows = self.runs.all().rows
        return rows.filter(pa.array(~self._is_removed(rows))).select(self._names)

    def _add(self, keys: KeyHashes, rows: pa.Table, removed: bool) -> None:
        if not len(rows):
            return
        columns = [*rows.columns, pa.array(np.full(len(rows), removed))]
        self.runs.add(Entries(*keys, pa.Table.from_arrays(columns, schema=self._schema)))

    def _is_removed(self, rows: pa.Table) -> Flags:
        flags: Flags = rows.column(self._removed).fill_null(False).to_numpy()
        return flags
