"""Rows of many keys, found by key and span of time, and forgotten in the order of time.

Rows are sorted by the first half of their key's hash, then by time; the second half is a column that is
compared where a row is found. So no key needs a number that lasts, and none has to be forgotten.

Invariant: a row has a number, rows that came later have greater ones; what is found is of the key that was
asked for, though another one has the same first half.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.operators.columns import unused_name
from headwater.operators.event_time import FOREVER, NEVER, Times
from headwater.operators.groups import Numbers
from headwater.operators.memory.entries import Entries, arranged, opening
from headwater.operators.memory.key_hash import NO_KEY, KeyHashes
from headwater.operators.memory.run import Matches
from headwater.operators.memory.slots import next_numbers, slots_of_hashes
from headwater.operators.memory.sorted_runs import SortedRuns, Useful


class KeyedRows(NamedTuple):
    """Rows that were found: for which of the keys asked for (``query``), with key, time and number."""

    query: Numbers
    keys: KeyHashes
    at: Times
    numbers: Numbers
    rows: pa.Table

    def take(self, indices: npt.NDArray[np.generic]) -> KeyedRows:
        """Return some of them, by their indices or by flags."""
        if indices.dtype == np.bool_:
            indices = np.flatnonzero(indices)
        rows = self.rows.take(pa.array(indices))
        return KeyedRows(
            self.query[indices], self.keys.take(indices), self.at[indices], self.numbers[indices], rows
        )


class RowsByKeyAndTime:
    """Rows by key and time."""

    def __init__(self, schema: pa.Schema, useful: Useful | None = None):
        self._names = schema.names
        self.low, self.number = (unused_name(name, schema.names) for name in ("_low", "_number"))
        mine = [pa.field(self.low, pa.int64()), pa.field(self.number, pa.int64())]
        self._schema = pa.schema([*schema, *mine])
        self.runs = SortedRuns(self._schema.empty_table(), None, useful=useful)
        self.added = 0
        """How many rows were added so far: to be stored with the runs."""

    def __len__(self) -> int:
        """Return how many rows are held, those among them that go when runs are merged."""
        return len(self.runs)

    def add(self, rows: pa.Table, at: Times, keys: KeyHashes) -> Numbers:
        """Add rows with their times and keys; return their numbers."""
        numbers = next_numbers(self.added, slots_of_hashes(keys.high))
        self.added += len(rows)
        columns = [*rows.columns, pa.array(keys.low), pa.array(numbers)]
        self.runs.add(Entries(keys.high, at, pa.Table.from_arrays(columns, schema=self._schema)))
        return numbers

    def find(self, keys: KeyHashes, first: Times, last: Times, *columns: str) -> KeyedRows:
        """Return the rows of each key within a span of time, both ends included, in the order of arrival.

        With some columns of them, or with all.
        """
        known = np.flatnonzero(keys.low != NO_KEY)
        names = dict.fromkeys((*(columns or self._names), self.low, self.number))
        of, entries = self.runs.matches(keys.high[known], first[known], last[known], *names)
        found = self._keyed(Matches(known[of], entries))
        mine = found.keys.low == keys.low[found.query]
        if not mine.all():
            found = found.take(mine)
        indices = arranged(found.query, found.numbers)
        return found if (indices[1:] > indices[:-1]).all() else found.take(indices)

    def near(self, keys: KeyHashes, first: Times, last: Times) -> KeyedRows:
        """Return rows that may be of these keys, from the first to the last time of each; each row once.

        They are without columns, and for no query: what is asked of them may be about many pairs.
        """
        known = np.flatnonzero(keys.low != NO_KEY)
        known = known[np.argsort(keys.high[known], kind="stable")]
        high, first, last = keys.high[known], first[known], last[known]
        start = np.flatnonzero(np.append(True, high[1:] != high[:-1])[: len(high)])
        if len(start):
            first, last = np.minimum.reduceat(first, start), np.maximum.reduceat(last, start)
        found = self._keyed(self.runs.matches(high[start], first, last, self.low, self.number))
        return found.take(found.keys.low != NO_KEY)

    def newest(self, keys: KeyHashes, until: Times) -> KeyedRows:
        """Return the rows of the newest time of each key that is not after a time."""
        at = self.runs.last_until(keys.high, until)
        asked = np.flatnonzero((at != NEVER) & (keys.low != NO_KEY))
        found = self.find(keys.take(asked), at[asked], at[asked])
        found = found._replace(query=asked[found.query])
        missed = _without(asked, found.query, len(at))
        return _both(found, self._newest_among(keys, until, missed)) if len(missed) else found

    def next(self, keys: KeyHashes, after: Times) -> Times:
        """Return the time of the next row of each key after a time; FOREVER where there is none."""
        at = self.runs.first_after(keys.high, after)
        at[keys.low == NO_KEY] = FOREVER
        asked = np.flatnonzero(at != FOREVER)
        found = self.find(keys.take(asked), at[asked], at[asked], self.low)
        missed = _without(asked, asked[found.query], len(at))
        if len(missed):  # another key of the same first half has a row before
            at[missed] = FOREVER
            found = self.find(keys.take(missed), after[missed] + 1, at[missed], self.low)
            np.minimum.at(at, missed[found.query], found.at)
        return at

    def take(self, high: Numbers, at: Times, numbers: Numbers, *columns: str) -> pa.Table:
        """Return rows that are held, by the first half of their keys, their times and their numbers."""
        indices = arranged(high, at)
        distinct = indices[opening(high[indices], at[indices])]
        names = list(columns or self._names)
        found = self.runs.matches(high[distinct], at[distinct], at[distinct], *names, self.number)
        there = found.entries.rows.column(self.number).to_numpy()
        order = np.argsort(there)
        position = order[np.minimum(np.searchsorted(there, numbers, sorter=order), len(there) - 1)]
        assert np.array_equal(there[position], numbers), "a row that waits is held"
        return found.entries.rows.select(names).take(pa.array(position))

    def drop(self, before: int) -> None:
        """Forget the rows from before a time."""
        if before > NEVER:
            self.runs.forget(before - 1)

    def fading(self) -> int | None:
        """Return the time after which rows can be given back, as many as lie together."""
        return self.runs.fading()

    def _newest_among(self, keys: KeyHashes, until: Times, missed: Numbers) -> KeyedRows:
        """Look through all rows of keys, each of which shares its first half with another one."""
        found = self.find(keys.take(missed), np.full(len(missed), NEVER), until[missed])
        newest = np.full(len(missed), NEVER)
        np.maximum.at(newest, found.query, found.at)
        found = found.take(found.at == newest[found.query])
        return found._replace(query=missed[found.query])

    def _keyed(self, found: Matches) -> KeyedRows:
        rows = found.entries.rows
        low, number = (rows.column(name).to_numpy() for name in (self.low, self.number))
        names = [name for name in rows.column_names if name not in (self.low, self.number)]
        keys = KeyHashes(found.entries.major, low)
        return KeyedRows(found.of, keys, found.entries.minor, number, rows.select(names))


def _both(one: KeyedRows, other: KeyedRows) -> KeyedRows:
    query, at, numbers = (
        np.concatenate(each)
        for each in ((one.query, other.query), (one.at, other.at), (one.numbers, other.numbers))
    )
    keys = KeyHashes(*(np.concatenate(each) for each in zip(one.keys, other.keys, strict=True)))
    return KeyedRows(query, keys, at, numbers, pa.concat_tables([one.rows, other.rows]).combine_chunks())


def _without(asked: Numbers, found: Numbers, count: int) -> Numbers:
    """Return the queries, of so many, that were asked and for which nothing was found."""
    missed = np.zeros(count, np.bool_)
    missed[asked] = True
    missed[found] = False
    return np.flatnonzero(missed)
