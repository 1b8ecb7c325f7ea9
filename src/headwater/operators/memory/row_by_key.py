"""One row for each key: the newest that was put there, until it is removed.

Invariant: what is found for a key is what was put, or removed, last.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from headwater.operators.columns import null_rows, plain_values, unused_name
from headwater.operators.groups import Flags
from headwater.operators.memory.entries import Entries, newest
from headwater.operators.memory.key_hash import KeyHashes
from headwater.operators.memory.slots import SlotOf, by_hash
from headwater.operators.memory.sorted_runs import SortedRuns


class FoundRows(NamedTuple):
    """Which of some keys have a row, and the rows, with nulls for the others."""

    known: Flags
    rows: pa.Table


class RowByKey:
    """Rows by key."""

    def __init__(self, schema: pa.Schema, slots: SlotOf = by_hash):
        """``slots`` tells the slots of rows whose key is not that of the operator."""
        self._names = schema.names
        self._removed = unused_name("_removed", self._names)
        self._rows = pa.schema([field.with_nullable(True) for field in schema])
        self._schema = self._rows.append(pa.field(self._removed, pa.bool_()))
        self.runs = SortedRuns(self._schema.empty_table(), newest, self._is_removed, slots=slots)

    def find(self, keys: KeyHashes, *columns: str) -> FoundRows:
        """Return which keys have a row, and the rows, nulls for the others; all columns, or some."""
        names = columns or tuple(self._names)
        found = self.runs.find(*keys)
        rows = found.rows(*names, self._removed)
        removed = self._is_removed(rows)
        rows = rows.select(names)
        if not removed.any():
            return FoundRows(found.known, rows)
        return FoundRows(found.known & ~removed, rows.take(pa.array(np.arange(len(removed)), mask=removed)))

    def put(self, keys: KeyHashes, rows: pa.Table) -> None:
        """Put the rows of some keys, each key once, in place of those that they have."""
        self._add(keys, rows, np.zeros(len(rows), np.bool_))

    def remove(self, keys: KeyHashes) -> None:
        """Take away the rows of some keys."""
        count = len(keys.high)
        self._add(keys, null_rows(self._rows, count), np.ones(count, np.bool_))

    def change(self, keys: KeyHashes, rows: pa.Table, removed: Flags) -> None:
        """Put the rows of some keys, each key once, and take away those of the others."""
        if removed.any():
            rows = rows.take(pa.array(np.arange(len(rows)), mask=removed))
        self._add(keys, rows, removed)

    def rows(self) -> pa.Table:
        """Return the rows of all keys: all of them at once, in memory."""
        rows = self.runs.all().rows
        return rows.filter(pa.array(~self._is_removed(rows))).select(self._names)

    def _add(self, keys: KeyHashes, rows: pa.Table, removed: Flags) -> None:
        if not len(rows):
            return
        columns = [*rows.columns, pa.array(removed)]
        self.runs.add(Entries(*keys, pa.Table.from_arrays(columns, schema=self._schema)))

    def _is_removed(self, rows: pa.Table) -> Flags:
        return plain_values(rows.column(self._removed), False)
