"""The rows of a table as they are now, by primary key, and by what they are joined by, their index key.

Rows lie under their index keys, so that those of one key are read together, each at the number that it
keeps while its primary key is there. The primary key tells where that is. Of an index key one half of the
hash is what rows are sorted by, and the other one lies beside the row and is compared. Where a row has left
is told by an age, or a number, that none has.

Invariant: ages are in the order in which the rows were put, also after a restart; so rows that are sorted by
their ages come in an order that does not depend on runs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from headwater.operators.columns import null_rows, unused_name
from headwater.operators.groups import Flags, Numbers
from headwater.operators.memory.entries import Entries, newest
from headwater.operators.memory.key_hash import KeyHashes
from headwater.operators.memory.run import positions
from headwater.operators.memory.slots import by_column, by_minor, next_numbers
from headwater.operators.memory.sorted_runs import SortedRuns

UNMET = -1
"""The second half of an index key that is equal to none, as it has a null."""
_NONE = -1
"""The number, and the age, of a row that is not there."""
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

    @property
    def known(self) -> Flags:
        """Tell which are there; of the others, the numbers are below 0 and the rows null."""
        flags: Flags = self.ids >= 0
        return flags

    def only(self, chosen: Flags) -> IndexedRows:
        """Return the rows that are chosen."""
        if chosen.all():
            return self
        rows = self.rows.take(pa.array(np.flatnonzero(chosen)))
        return IndexedRows(self.index.take(chosen), self.ids[chosen], self.ages[chosen], rows)


class IndexedTable:
    """Rows by primary key and by index key."""

    def __init__(self, schema: pa.Schema):
        self.names = schema.names
        self._low, self._age = (unused_name(name, self.names) for name in ("_low", "_age"))
        self._plain = pa.schema([field.with_nullable(True) for field in schema])
        mine = [pa.field(name, pa.int64()) for name in (self._low, self._age)]
        self._schema = pa.schema([*self._plain, *mine])
        self._places = SortedRuns(_PLACE.empty_table(), newest, _has_left("id"), slots=by_column("id"))
        self._rows = SortedRuns(self._schema.empty_table(), newest, _has_left(self._age), slots=by_minor)
        self.given = 0
        """How many numbers were given so far."""
        self.put = 0
        """How many rows were put so far."""

    def containers(self, side: str) -> dict[str, SortedRuns]:
        """Return what is to be stored, under names for a side."""
        return {f"{side}.places": self._places, f"{side}.rows": self._rows}

    def counters(self, side: str) -> dict[str, tuple[object, str]]:
        """Return the numbers that are to be stored, as ``OperatorMemory`` takes them."""
        return {f"{side}.{name}": (self, name) for name in ("given", "put")}

    def find(self, keys: KeyHashes) -> IndexedRows:
        """Return the rows of primary keys, as far as they are known."""
        place = self._places.find(*keys)
        high, ids = (place.numbers(name, _NONE) for name in _PLACE.names)
        found = self._rows.find(high, ids)
        low, ages = (found.numbers(name, _NONE) for name in (self._low, self._age))
        return IndexedRows(KeyHashes(high, low), ids, ages, found.rows(*self.names))

    def under(self, index: KeyHashes) -> tuple[Numbers, IndexedRows]:
        """Return the rows under index keys, given once and in order, and the place of the key of each."""
        high = index.high
        if (again := high[1:] == high[:-1]).any():
            high = high[np.append(True, ~again)]
        found = self._rows.under(high)
        low, ages = (_numbers(found.rows, name) for name in (self._low, self._age))
        of = positions(Entries(*index, found.rows), found.major, low)
        rows = IndexedRows(KeyHashes(found.major, low), found.minor, ages, found.rows.select(self.names))
        there = (of >= 0) & (ages != _NONE)
        return of[there], rows.only(there)

    def change(
        self, keys: KeyHashes, old: IndexedRows, deleted: Flags, index: IndexKeys, rows: pa.Table
    ) -> IndexedRows:
        """Delete rows of some keys, and put those of the others, whose index keys and rows are given.

        ``old`` is what ``find`` says of all keys. Returns the rows that were put.
        """
        ids = old.ids[~deleted]
        new = np.flatnonzero(ids == _NONE)
        ids[new] = next_numbers(self.given, index.slots[new])
        ages = np.arange(self.put, self.put + len(rows))
        self.given += len(new)
        self.put += len(rows)
        put = IndexedRows(index.keys, ids, ages, rows)
        self._move(keys, old, deleted, put)
        return put

    def rows(self) -> pa.Table:
        """Return all rows, by their age: all of them at once, in memory."""
        found = self._rows.all().rows
        ages = _numbers(found, self._age)
        there = np.flatnonzero(ages != _NONE)
        return found.select(self.names).take(pa.array(there[np.argsort(ages[there])]))

    def _move(self, keys: KeyHashes, old: IndexedRows, deleted: Flags, put: IndexedRows) -> None:
        """Store rows, that others are no longer where they were, and where those are that have moved."""
        high, ids = old.index.high.copy(), np.full(len(old), _NONE)
        high[~deleted], ids[~deleted] = put.index.high, put.ids
        moved = (old.ids != ids) | (old.index.high != high)
        places = pa.Table.from_arrays([pa.array(high[moved]), pa.array(ids[moved])], schema=_PLACE)
        self._places.add(Entries(*keys.take(moved), places))
        high, ids = (each[moved & old.known] for each in (old.index.high, old.ids))
        gone = np.full(len(ids), _NONE)
        both = (put.index.high, high), (put.ids, ids), (put.index.low, gone), (put.ages, gone)
        major, minor, low, ages = (np.concatenate(each) for each in both)
        rows = pa.Table.from_arrays(put.rows.columns, schema=self._plain)
        if len(gone):
            rows = pa.concat_tables([rows, null_rows(self._plain, len(gone))])
        columns = [*rows.columns, pa.array(low), pa.array(ages)]
        self._rows.add(Entries(major, minor, pa.Table.from_arrays(columns, schema=self._schema)))


def _numbers(rows: pa.Table, column: str) -> Numbers:
    numbers: Numbers = rows.column(column).to_numpy()
    return numbers


def _has_left(name: str) -> Callable[[pa.Table], Flags]:
    """Return what tells which rows stand for none, by the number in a column."""
    return lambda rows: _numbers(rows, name) == _NONE
