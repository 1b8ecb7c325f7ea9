"""How often each window was published.

Invariant: a window that is still held has here as many publications as came out of it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from headwater.operators.event_time import Times
from headwater.operators.groups import Numbers
from headwater.operators.memory.partials import Entries, Partials, spans

PUBLISHED = pa.field("_published", pa.int64())


class PublicationCounts:
    """Counts by window and number of a key; where each window is published once, there is none."""

    def __init__(self, key: Sequence[pa.Field], counting: bool):
        self._empty = pa.schema([*key, PUBLISHED]).empty_table()
        self._counts = Partials(self._empty, _merge)
        self._counting = counting

    def __len__(self) -> int:
        return len(self._counts)

    def of(self, windows: Times, keys: Numbers) -> Numbers:
        """Return how often windows were published."""
        counts = np.zeros(len(windows), np.int64)
        found = self._counts.within(windows, keys, keys + 1)
        if len(found):
            start, end = spans(found, windows, keys, keys + 1)
            known = start < end
            counts[known] = found.rows.column(-1).to_numpy()[start[known]]
        return counts

    def publish(self, windows: Times, keys: Numbers, rows: pa.Table) -> Entries:
        """Count windows as published once more, given rows that begin with their keys."""
        if not self._counting:
            return Entries(windows[:0], keys[:0], self._empty)
        columns = rows.columns[: len(self._empty.columns) - 1]
        ones = pa.array(np.ones(len(windows), np.int64))
        made = Entries(windows, keys, pa.Table.from_arrays([*columns, ones], schema=self._empty.schema))
        self.add(made)
        return made

    def add(self, counts: Entries) -> None:
        """Add to the counts."""
        self._counts.add(counts)

    def drop(self, before: int) -> None:
        """Forget the windows from before a time."""
        self._counts.drop(before)

    def all(self) -> Entries:
        """Return all counts."""
        return self._counts.all()


def _merge(rows: pa.Table, groups: Numbers, count: int) -> pa.Table:
    first = np.empty(count, np.int64)
    first[groups[::-1]] = np.arange(len(groups))[::-1]
    sums = np.zeros(count, np.int64)
    np.add.at(sums, groups, rows.column(-1).to_numpy())
    return rows.take(pa.array(first)).set_column(len(rows.columns) - 1, PUBLISHED, pa.array(sums))
