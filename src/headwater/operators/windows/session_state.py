"""The sessions that are held: found by key, by when they end, and changed by writing them anew.

A session is one piece; or, where open ones are shown at times that the clock decides, it is cut at those
that are still to come. Each piece knows when its session ends. What is written last of a piece counts; one
that has become part of another is written once more, as removed. What is out of date is cleared away when it
is half of everything.

Invariant: the pieces of a session tell one end and one revision, and no two sessions of a key overlap.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from headwater.operators.event_time import NEVER, Times
from headwater.operators.groups import Flags, Numbers
from headwater.operators.memory.entries import Entries, newest
from headwater.operators.memory.key_ids import KeyIds
from headwater.operators.memory.rows_in_time import RowsInTime
from headwater.operators.memory.slots import by_major, slots_of_numbers
from headwater.operators.memory.sorted_runs import SortedRuns
from headwater.operators.windows.windowing import bounded

_STATUS = [pa.field("_end", pa.int64()), pa.field("_revision", pa.int64()), pa.field("_gone", pa.bool_())]
_END, _REVISION, _GONE = -3, -2, -1
_WHERE = pa.schema([("key_id", pa.int64()), ("start", pa.int64())])


class Sessions:
    """Pieces of sessions by the number of their key and their start; and the clock of the last step."""

    def __init__(self, partials: pa.Schema, cut: bool):
        self.key_ids = KeyIds()
        self.watermark = NEVER
        self._empty = pa.schema([*partials, *_STATUS]).empty_table()
        self.held = SortedRuns(self._empty, newest, slots=by_major)
        self.ending, self.fading = RowsInTime(_WHERE), RowsInTime(_WHERE)
        self.coming = RowsInTime(_WHERE)
        self._cut = cut
        self.spent = 0

    def __len__(self) -> int:
        return len(self.held)

    def of(self, key_ids: Numbers) -> Entries:
        """Return the sessions of some keys, given once and in order."""
        return living(self.held.under(key_ids))

    def put(self, written: Entries) -> None:
        """Write sessions, in place of what was written of them before."""
        self.held.add(written)
        self.spent += int(removed(written).sum())
        there = living(written)
        where = pa.Table.from_arrays([pa.array(there.major), pa.array(there.minor)], schema=_WHERE)
        slots = slots_of_numbers(there.major)
        self.ending.add(where, ends(there), slots)
        self.fading.add(where, ends(there), slots)
        if self._cut:
            self.coming.add(where, there.minor, slots)

    def due(self, watermark: int, passed: int) -> Numbers:
        """Return the keys of sessions that end by the clock, or have more to show from before a time."""
        some = pa.concat_tables([self.ending.until(bounded(watermark + 1)), self.coming.until(passed)])
        return np.unique(some["key_id"].to_numpy())

    def drop(self, before: int, watermark: int, passed: int) -> None:
        """Forget the sessions that have ended by a time, and what up to the clock was due."""
        self.ending.drop(bounded(watermark + 1))
        self.coming.drop(passed)
        self.spent += self.fading.drop(bounded(before + 1))
        if 2 * self.spent > len(self.held):
            self._clear(before)
        if self.key_ids.crowded:
            self.key_ids.keep(np.unique(self.held.majors()))

    def next_timer(self, margin: int) -> int | None:
        """Return the next end of a session, or the time to forget one, a margin after its end."""
        first, last = self.ending.first(), self.fading.first()
        found = [] if first is None else [first]
        return min([*found, *([] if last is None else [last + margin])], default=None)

    def all(self) -> Entries:
        """Return all sessions."""
        return living(self.held.all())

    def _clear(self, before: int) -> None:
        held = self.all()
        self.held = SortedRuns(self._empty, newest, slots=by_major)
        self.held.add(held.take(np.flatnonzero(ends(held) > before)))
        self.spent = 0


def with_status(partials: pa.Table, end: Times, revision: Numbers, removed: Flags) -> pa.Table:
    """Return partial results with the columns that tell how the sessions stand."""
    columns = [*partials.columns, *map(pa.array, (end, revision, removed))]
    return pa.Table.from_arrays(columns, schema=pa.schema([*partials.schema, *_STATUS]))


def ends(entries: Entries) -> Times:
    """Return when sessions end."""
    found: Times = entries.rows.column(_END).to_numpy()
    return found


def revisions(entries: Entries) -> Numbers:
    """Return with which revision sessions are, or will be, published."""
    found: Numbers = entries.rows.column(_REVISION).to_numpy()
    return found


def removed(entries: Entries) -> Flags:
    """Tell which sessions have become part of others."""
    found: Flags = entries.rows.column(_GONE).to_numpy()
    return found


def partials(entries: Entries) -> pa.Table:
    """Return the partial results of sessions."""
    return entries.rows.select(list(range(len(entries.rows.columns) - len(_STATUS))))


def living(entries: Entries) -> Entries:
    """Return the sessions that are not removed."""
    return entries.only(~removed(entries))
