"""The versions of each key's row: found by the time at which they were valid, forgotten when replaced.

A version is valid from its time until the next one's. Of versions of one time the greatest by all columns
is valid, so it does not matter in which order they came; of equal ones the first to come.

Invariant: for every time that is not before the floor, the version that was valid then is held.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.operators.columns import unused_name
from headwater.operators.event_time import NEVER, Times
from headwater.operators.groups import Flags, Numbers
from headwater.operators.memory.entries import Entries, opening
from headwater.operators.memory.key_hash import KeyHashes
from headwater.operators.memory.rows_by_key_and_time import KeyedRows, RowsByKeyAndTime
from headwater.operators.order import order

NOWHERE = -1
"""The number of a version that is not there."""


class ValidVersions(NamedTuple):
    """The version that each key had at a time: its number, NOWHERE for none, and its row, with nulls then."""

    numbers: Numbers
    rows: pa.Table

    def take(self, indices: npt.NDArray[np.int64]) -> ValidVersions:
        """Return some of them."""
        return ValidVersions(self.numbers[indices], self.rows.take(pa.array(indices)))


class RowVersions:
    """Rows by key and by the time from which on they are valid."""

    def __init__(self, schema: pa.Schema):
        self._schema, self._end = schema, unused_name("_end", schema.names)
        stored = schema.append(pa.field(self._end, pa.bool_()))
        self.held = RowsByKeyAndTime(stored, self._useful)
        self.floor = NEVER
        """The earliest time for which the table may still be asked."""

    def __len__(self) -> int:
        """Return how many are held, those among them that go when runs are merged."""
        return len(self.held)

    def add(self, rows: pa.Table, at: Times, keys: KeyHashes, ends: Flags) -> None:
        """Add versions; those that are an end say that from then on there is none."""
        self.held.add(rows.append_column(self._end, pa.array(ends)), at, keys)

    def valid(self, keys: KeyHashes, at: Times) -> ValidVersions:
        """Return the version of each key that was valid at a time."""
        found = self._greatest(self.held.newest(keys, at))
        numbers, position = np.full(len(at), NOWHERE), np.full(len(at), NOWHERE)
        lives = np.flatnonzero(~found.rows.column(self._end).to_numpy())
        numbers[found.query[lives]], position[found.query[lives]] = found.numbers[lives], lives
        rows = found.rows.select(self._schema.names)
        return ValidVersions(numbers, rows.take(pa.array(position, mask=position == NOWHERE)))

    def next(self, keys: KeyHashes, after: Times) -> Times:
        """Return the time of the next version of each key after a time; FOREVER where there is none."""
        return self.held.next(keys, after)

    def _greatest(self, found: KeyedRows) -> KeyedRows:
        """Return the greatest of the versions that are of one time."""
        if len(np.unique(found.query)) == len(found.query):
            return found
        return found.take(_last_of(found.rows, found.numbers, found.query))

    def _useful(self, entries: Entries, bottom: bool) -> Flags:
        """Tell which versions may still be asked for, as far as these entries tell."""
        useful = ~self._replaced(entries)
        again = ~opening(entries.major, entries.minor)
        if again.any():
            useful[self._outdone(entries, again | np.append(again[1:], False))] = False
        return self._begun(entries, useful) if bottom else useful

    def _replaced(self, entries: Entries) -> Flags:
        """Tell which versions have a later one of their key that is not after the floor."""
        low = entries.rows.column(self.held.low).to_numpy()
        follows = (entries.major[1:] == entries.major[:-1]) & (low[1:] == low[:-1])
        follows &= (entries.minor[1:] > entries.minor[:-1]) & (entries.minor[1:] <= self.floor)
        return np.append(follows, False)[: len(entries)]

    def _outdone(self, entries: Entries, tied: Flags) -> Numbers:
        """Return which of the versions that share key and time with others are not the greatest."""
        some = np.flatnonzero(tied)
        rows = entries.rows.take(pa.array(some))
        low, number = (rows.column(name).to_numpy() for name in (self.held.low, self.held.number))
        pair = np.cumsum(opening(entries.major[some], entries.minor[some]))
        group = np.unique(np.column_stack([pair, low]), axis=0, return_inverse=True)[1].reshape(-1)
        names = [*self._schema.names, self._end]
        return np.delete(some, _last_of(rows.select(names), number, group))

    def _begun(self, entries: Entries, useful: Flags) -> Flags:
        """Leave out ends from before the floor with nothing before them: as if the key had never been.

        At the floor itself another version may still come, and be less than the end. What came before the
        first key of these entries may lie elsewhere, and must stay covered.
        """
        left = np.flatnonzero(useful)
        major = entries.major[left]
        over = (entries.minor[left] < self.floor) & (major != entries.major[:1])
        over &= entries.rows.column(self._end).to_numpy()[left]
        over &= np.append(True, major[1:] != major[:-1])[: len(left)]
        useful[left[over]] = False
        return useful


def _last_of(rows: pa.Table, numbers: Numbers, group: Numbers) -> Numbers:
    """Return the index of the greatest row of each group; of equal ones that of the least number."""
    backwards = np.argsort(-numbers, kind="stable")
    places = backwards[order(rows.take(pa.array(backwards)), group[backwards])]
    last: Numbers = places[np.append(group[places][1:] != group[places][:-1], True)]
    return last
