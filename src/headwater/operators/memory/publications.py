"""How often each window was published.

Invariant: a window that is still held has here as many publications as came out of it.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from headwater.operators.event_time import Times
from headwater.operators.groups import Numbers
from headwater.operators.memory.entries import Entries, spans
from headwater.operators.memory.slots import by_minor
from headwater.operators.memory.sorted_runs import SortedRuns

_PUBLISHED = pa.schema([("published", pa.int64())])


class PublicationCounts:
    """Counts by window and number of a key; where each window is published once, there is none."""

    def __init__(self, counting: bool):
        self.runs = SortedRuns(_PUBLISHED.empty_table(), _merge, slots=by_minor)
        self._counting = counting

    def __len__(self) -> int:
        return len(self.runs)

    def of(self, windows: Times, keys: Numbers) -> Numbers:
        """Return how often windows were published."""
        counts = np.zeros(len(windows), np.int64)
        found = self.runs.within(windows, keys, keys + 1)
        if len(found):
            start, end = spans(found, windows, keys, keys + 1)
            known = start < end
            counts[known] = found.rows.column(0).to_numpy()[start[known]]
        return counts

    def publish(self, windows: Times, keys: Numbers) -> None:
        """Count windows as published once more."""
        if self._counting:
            ones = pa.table([np.ones(len(windows), np.int64)], schema=_PUBLISHED)
            self.runs.add(Entries(windows, keys, ones))

    def drop(self, before: int) -> None:
        """Forget the windows from before a time."""
        self.runs.drop(before)


def _merge(rows: pa.Table, groups: Numbers, count: int) -> pa.Table:
    sums = np.zeros(count, np.int64)
    np.add.at(sums, groups, rows.column(0).to_numpy())
    return pa.table([sums], schema=_PUBLISHED)
