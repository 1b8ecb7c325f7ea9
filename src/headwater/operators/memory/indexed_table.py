"""The rows of a table as they are now, by primary key, and by what they are joined by, their index key.

Rows lie under their index keys, so that those of one key are read together, each at the number that it
keeps while its primary key is there. The primary key tells where that is. Of an index key one half of the
hash is what rows are sorted by, and the other one lies beside the row and is compared.

Invariant: ages are in the order in which the rows were put, also after a restart; so rows that are sorted by
their ages come in an order that does not depend on runs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from headwater.operators.columns import unused_name
from headwater.operators.event_time import FOREVER
from headwater.operators.groups import Flags, Numbers
from headwater.operators.memory.entries import Entries, newest
from headwater.operators.memory.key_hash import KeyHashes
from headwater.operators.memory.row_by_key import RowByKey
from headwater.operators.memory.run import Run
from headwater.operators.memory.slots import by_column, by_minor, next_numbers
from headwater.operators.memory.sorted_runs import FoundRows, SortedRuns

UNMET = -1
"""The second half of an index key that is equal to none, as it has a null."""
_PLACE = pa.schema([("high", pa.int64()), ("id", pa.int64())])


@dataclass(frozen=True)
class IndexKeys:
    """What rows are joined by, and the slots in which they arrive: those of a part of it."""

    keys: KeyHashes
    slots: Numbers


@dataclass(frozen=True)
class IndexedRows:
    """Rows, each with its index key, the number that it keeps, and its age."""

    index: KeyHashes
    ids: Numbers
    ages: Numbers
    rows: pa.Table

    def __len__(self) -> int:
        return len(self.ids)

    def take(self, indices: Numbers) -> IndexedRows:
        """Return some of the rows."""
        rows = self.rows.take(pa.array(indices))
        return IndexedRows(self.index.take(indices), self.ids[indices], self.ages[indices], rows)


class IndexedTable:
    """Rows by primary key and by index key."""

    def __init__(self, schema: pa.Schema):
        self.names = schema.names
        self._extra = [unused_name(name, self.names) for name in ("_low", "_age", "_removed")]
        kinds = zip(self._extra, (pa.int64(), pa.int64(), pa.bool_()), strict=True)
        fields = [field.with_nullable(True) for field in schema]
        self._schema = pa.schema([*fields, *(pa.field(*kind) for kind in kinds)])
        self._places = RowByKey(_PLACE, by_column("id"))
        self._rows = SortedRuns(self._schema.empty_table(), newest, self._is_removed, slots=by_minor)
        self.given = 0
        """How many numbers were given so far."""
        self.put = 0
        """How many rows were put so far."""

    def containers(self, side: str) -> dict[str, SortedRuns]:
        """Return what is to be stored, under names for a side."""
        return {f"{side}.places": self._places.runs, f"{side}.rows": self._rows}

    def counters(self, side: str) -> dict[str, tuple[object, str]]:
        """Return the numbers that are to be stored, as ``OperatorMemory`` takes them."""
        return {f"{side}.{name}": (self, name) for name in ("given", "put")}

    def find(self, keys: KeyHashes) -> tuple[FoundRows, IndexedRows]:
        """Return which primary keys have a row, and the rows; nulls for the others, and numbers below 0."""
        known, places = self._places.find(keys)
        high, ids = (places.column(name).fill_null(-1).to_numpy() for name in _PLACE.names)
        found = self._indexed(Entries(high, ids, self._rows.find(high, ids).rows))
        return FoundRows(known, found.rows), found

    def under(self, index: KeyHashes) -> tuple[Numbers, IndexedRows]:
        """Return the rows under index keys, given once and in order, and the place of the key of each."""
        if not len(index.high):
            none = self._rows.between(0, 0)
            return none.major, self._indexed(none)
        high = index.high[np.append(True, index.high[1:] != index.high[:-1])]
        found = self._rows.within(high, np.zeros(len(high), np.int64), np.full(len(high), FOREVER))
        low = found.rows.column(self._extra[0]).fill_null(UNMET).to_numpy()
        of = Run((Entries(*index, found.rows),)).find(found.major, low)
        there = np.flatnonzero((of >= 0) & ~self._is_removed(found.rows))
        if len(there) < len(of):
            of, found = of[there], found.take(there)
        return of, self._indexed(found)

    def change(
        self, keys: KeyHashes, old: IndexedRows, deleted: Flags, index: IndexKeys, rows: pa.Table
    ) -> IndexedRows:
        """Delete rows of some keys, and put those of the others, whose index keys and rows are given.

        ``old`` is what ``find`` says of all keys. Returns the rows that were put.
        """
        ids = old.ids[~deleted]
        new = np.flatnonzero(ids < 0)
        ids[new] = next_numbers(self.given, index.slots[new])
        ages = np.arange(self.put, self.put + len(rows))
        self.given += len(new)
        self.put += len(rows)
        put = IndexedRows(index.keys, ids, ages, rows)
        self._move(keys, old, deleted, put)
        return put

    def rows(self) -> pa.Table:
        """Return all rows, by their age: all of them at once, in memory."""
        found = self._rows.all()
        there = self._indexed(found.take(np.flatnonzero(~self._is_removed(found.rows))))
        return there.rows.take(pa.array(np.argsort(there.ages)))

    def _move(self, keys: KeyHashes, old: IndexedRows, deleted: Flags, put: IndexedRows) -> None:
        """Store rows, that others are no longer where they were, and where those are that have moved."""
        high, ids = old.index.high.copy(), old.ids.copy()
        high[~deleted], ids[~deleted] = put.index.high, put.ids
        moved = np.flatnonzero(deleted | (old.ids < 0) | (old.index.high != high))
        places = pa.table([high[moved], ids[moved]], schema=_PLACE)
        self._places.change(keys.take(moved), places, deleted[moved])
        left = moved[old.ids[moved] >= 0]
        major = np.concatenate([put.index.high, old.index.high[left]])
        minor = np.concatenate([put.ids, old.ids[left]])
        self._rows.add(Entries(major, minor, self._rows_to_store(put, len(left))))

    def _rows_to_store(self, put: IndexedRows, removed: int) -> pa.Table:
        columns = [*put.rows.columns, pa.array(put.index.low), pa.array(put.ages)]
        if not removed:
            flags = pa.array(np.zeros(len(put), np.bool_))
            return pa.Table.from_arrays([*columns, flags], schema=self._schema)
        flags = pa.array(np.arange(len(put) + removed) >= len(put))
        with_nulls = pa.array(np.arange(len(flags)), mask=flags.to_numpy(zero_copy_only=False))
        longer = pa.Table.from_arrays(columns, names=self._schema.names[:-1]).take(with_nulls)
        return pa.Table.from_arrays([*longer.columns, flags], schema=self._schema)

    def _indexed(self, found: Entries) -> IndexedRows:
        low, ages = (found.rows.column(name).fill_null(-1).to_numpy() for name in self._extra[:2])
        return IndexedRows(KeyHashes(found.major, low), found.minor, ages, found.rows.select(self.names))

    def _is_removed(self, rows: pa.Table) -> Flags:
        flags: Flags = rows.column(self._extra[2]).fill_null(False).to_numpy()
        return flags
