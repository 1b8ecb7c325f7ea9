"""Which rows have had a match, in the order of time: so those without one are found when their time is over.

Invariant: a row that was marked as matched stays so until it is dropped.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.operators.columns import plain_values
from headwater.operators.event_time import NEVER, Times
from headwater.operators.groups import Flags, Numbers
from headwater.operators.memory.entries import Entries, newest
from headwater.operators.memory.slots import by_minor
from headwater.operators.memory.sorted_runs import SortedRuns

_MARK = pa.schema([("high", pa.int64()), ("matched", pa.bool_())])


class MarkedRows(NamedTuple):
    """Rows by the first half of their keys, their times and their numbers."""

    high: Numbers
    at: Times
    numbers: Numbers

    def take(self, indices: npt.NDArray[np.generic]) -> MarkedRows:
        """Return some of them, by their indices or by flags."""
        return MarkedRows(self.high[indices], self.at[indices], self.numbers[indices])


class MatchMarks:
    """Marks by time and number of a row."""

    def __init__(self) -> None:
        self.runs = SortedRuns(_MARK.empty_table(), newest, slots=by_minor)

    def __len__(self) -> int:
        return len(self.runs)

    def mark(self, rows: MarkedRows, matched: Flags) -> None:
        """Mark rows, as new ones without a match or as such that have one; the last mark counts."""
        marks = [pa.array(rows.high), pa.array(matched)]
        self.runs.add(Entries(rows.at, rows.numbers, pa.Table.from_arrays(marks, schema=_MARK)))

    def matched(self, rows: MarkedRows) -> Flags:
        """Tell which rows have had a match."""
        found = self.runs.find(rows.at, rows.numbers).rows("matched")
        return plain_values(found.column(0), False)

    def unmatched(self, before: int) -> MarkedRows:
        """Return the rows from before a time that had no match, in the order of their numbers."""
        found = self.runs.between(NEVER, before)
        alone = np.flatnonzero(~found.rows.column("matched").to_numpy())
        alone = alone[np.argsort(found.minor[alone])]
        return MarkedRows(found.rows.column("high").to_numpy()[alone], found.major[alone], found.minor[alone])

    def drop(self, before: int) -> None:
        """Forget the rows from before a time."""
        self.runs.drop(before)

    def first(self) -> int | None:
        """Return the earliest time."""
        return self.runs.next(NEVER)
