"""The rows of one side of an interval join that wait for those of the other.

Invariant: a row is held until it can have no match any more. Where rows without a match come out alone,
each of them that had none is told once, when it is due.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from headwater.operators.event_time import Times, moved
from headwater.operators.groups import Flags
from headwater.operators.joins.arrivals import Arrived
from headwater.operators.memory.entries import Entries, arranged, closed_spans
from headwater.operators.memory.key_hash import KeyHashes, numbered
from headwater.operators.memory.match_marks import MarkedRows, MatchMarks
from headwater.operators.memory.rows_by_key_and_time import KeyedRows, RowsByKeyAndTime
from headwater.operators.memory.sorted_runs import SortedRuns


class WaitingRows:
    """Rows by key and time; those without a match by time, if they are to come out alone."""

    def __init__(self, schema: pa.Schema, alone: bool, once: bool = False):
        """``alone``: rows without a match are told when they are due; ``once``: a match is told once."""
        self.rows = RowsByKeyAndTime(schema)
        self.marks = MatchMarks()
        self._alone, self._once = alone, once
        self._none = schema.empty_table()

    def __len__(self) -> int:
        """Return how many rows are held, those among them that go when runs are merged."""
        return len(self.rows)

    @property
    def containers(self) -> dict[str, SortedRuns]:
        """What is stored, by name."""
        marked = {"marks": self.marks.runs} if self._alone or self._once else {}
        return {"rows": self.rows.runs, **marked}

    def add(self, new: Arrived) -> MarkedRows:
        """Add rows; which of them have a match is noted when that is known."""
        return MarkedRows(new.keys.high, new.at, self.rows.add(*new))

    def note(self, new: MarkedRows, matched: Flags, found: KeyedRows) -> None:
        """Note of which new rows there is a match, and that there is one of rows that were found."""
        if self._alone or self._once:
            some = new.take(matched if self._once else ~matched)
            met = _marked(found).take(np.unique(found.numbers, return_index=True)[1])
            flags = np.append(np.full(len(some.numbers), self._once), np.ones(len(met.numbers), np.bool_))
            self.marks.mark(MarkedRows(*map(np.append, some, met)), flags)

    def meeting(self, new: Arrived, before: int, after: int) -> KeyedRows:
        """Return the rows, each once, that match a new one from so long before them to so long after them.

        Of rows of which a match is told once, those that had one are left out.
        """
        found = self.rows.near(new.keys, moved(new.at, -after), moved(new.at, before))
        if self._once:
            found = found.take(~self.marks.matched(_marked(found)))
        span = moved(found.at, -before), moved(found.at, after)
        return found.take(any_within(found.keys, *span, (new.keys, new.at)))

    def meets(self, new: Arrived, before: int, after: int) -> Flags:
        """Tell which new rows have a match among those that wait."""
        span = moved(new.at, -before), moved(new.at, after)
        found = self.rows.near(new.keys, *span)
        return any_within(new.keys, *span, (found.keys, found.at))

    def take(self, found: KeyedRows) -> pa.Table:
        """Return rows that were found, in the order of arrival."""
        return self._taken(_marked(found.take(np.argsort(found.numbers))))

    def due(self, before: int) -> pa.Table:
        """Return the rows from before a time that had no match, in the order of arrival."""
        return self._taken(self.marks.unmatched(before)) if self._alone else self._none

    def drop(self, before: int) -> None:
        """Forget the rows from before a time."""
        self.rows.drop(before)
        self.marks.drop(before)

    def next_timer(self, wait: int) -> int | None:
        """Return the clock at which rows are due, or can be given back, so long after their time."""
        ends = [end for end in (self.marks.first(), self.rows.fading()) if end is not None]
        return min(ends) + wait + 1 if ends else None

    def _taken(self, rows: MarkedRows) -> pa.Table:
        return self.rows.take(*rows) if len(rows.numbers) else self._none


def any_within(keys: KeyHashes, first: Times, last: Times, rows: tuple[KeyHashes, Times]) -> Flags:
    """Tell for which keys there is one of some rows within a span of time, both ends included."""
    held, at = rows
    if not len(at):
        return np.zeros(len(first), np.bool_)
    both = KeyHashes(*(np.concatenate(each) for each in zip(keys, held, strict=True)))
    numbers = numbered(both)
    mine, theirs = numbers[: len(first)], numbers[len(first) :]
    order = arranged(theirs, at)
    nothing = pa.table({})
    start, end = closed_spans(Entries(theirs[order], at[order], nothing), mine, first, last)
    flags: Flags = start < end
    return flags


def _marked(found: KeyedRows) -> MarkedRows:
    return MarkedRows(found.keys.high, found.at, found.numbers)
