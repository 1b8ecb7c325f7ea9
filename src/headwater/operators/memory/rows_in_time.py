"""Rows that wait for their time, and leave in the order of it.

Rows of one time keep the order in which they came.

Invariant: a row is there from when it was added until what is before a time after its own is dropped.
"""

from __future__ import annotations

import pyarrow as pa

from headwater.operators.event_time import NEVER, Times
from headwater.operators.groups import Numbers
from headwater.operators.memory.entries import Entries, newest
from headwater.operators.memory.slots import by_minor, next_numbers
from headwater.operators.memory.sorted_runs import SortedRuns


class RowsInTime:
    """Rows by time, and by a number that counts them."""

    def __init__(self, schema: pa.Schema):
        self.runs = SortedRuns(schema.empty_table(), newest, slots=by_minor)
        self.added = 0
        """How many rows were added so far: to be stored with the runs."""

    def __len__(self) -> int:
        """Return how many rows are held; of those that are stored, some may have been dropped."""
        return len(self.runs)

    def add(self, rows: pa.Table, at: Times, slots: Numbers) -> None:
        """Add rows with their times, none of them unknown, and the slots of their keys."""
        numbers = next_numbers(self.added, slots)
        self.added += len(rows)
        self.runs.add(Entries(at, numbers, rows))

    def until(self, before: int) -> pa.Table:
        """Return the rows from before a time, and keep them."""
        return self.runs.between(NEVER, before).rows

    def drop(self, before: int) -> int:
        """Forget the rows from before a time; return how many there were."""
        forgotten = self.runs.count(NEVER, before)
        self.runs.drop(before)
        return forgotten

    def first(self) -> int | None:
        """Return the earliest time."""
        return self.runs.next(NEVER)
