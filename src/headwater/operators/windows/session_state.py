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

from headwater.operators.event_time import Times
from headwater.operators.groups import Flags, Numbers
from headwater.operators.memory.key_ids import KeyIds
from headwater.operators.memory.partials import Entries, Partials
from headwater.operators.memory.timeline import Timeline
from headwater.operators.operator import NEVER
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
        self._held = Partials(self._empty, _newest)
        self._ending, self._fading = Timeline(_WHERE), Timeline(_WHERE)
        self._coming = Timeline(_WHERE)
        self._cut = cut
        self._spent = 0

    def __len__(self) -> int:
        return len(self._held)

    def of(self, key_ids: Numbers) -> Entries:
        """Return the sessions of some keys."""
        found = self._held.within(key_ids, np.full(len(key_ids), NEVER), np.full(len(key_ids), -NEVER - 1))
        return living(found)

    def put(self, written: Entries) -> None:
        """Write sessions, in place of what was written of them before."""
        self._held.add(written)
        self._spent += int(removed(written).sum())
        there = living(written)
        where = pa.Table.from_arrays([pa.array(there.major), pa.array(there.minor)], schema=_WHERE)
        self._ending.add(where, ends(there))
        self._fading.add(where, ends(there))
        if self._cut:
            self._coming.add(where, there.minor)

    def due(self, watermark: int, passed: int) -> Numbers:
        """Return the keys of sessions that end by the clock, or have more to show from before a time."""
        some = pa.concat_tables([self._ending.until(bounded(watermark + 1)), self._coming.until(passed)])
        return np.unique(some["key_id"].to_numpy())

    def drop(self, before: int, watermark: int, passed: int) -> None:
        """Forget the sessions that have ended by a time, and what up to the clock was due."""
        self._ending.drop(bounded(watermark + 1))
        self._coming.drop(passed)
        self._spent += len(self._fading)
        self._fading.drop(bounded(before + 1))
        self._spent -= len(self._fading)
        if 2 * self._spent > len(self._held):
            self._clear(before)
        if self.key_ids.crowded:
            self.key_ids.keep(np.unique(self._held.majors()))

    def next_timer(self, margin: int) -> int | None:
        """Return the next end of a session, or the time to forget one, a margin after its end."""
        first, last = self._ending.first(), self._fading.first()
        found = [] if first is None else [first]
        return min([*found, *([] if last is None else [last + margin])], default=None)

    def coming(self) -> int | None:
        """Return the start of the next piece to be shown, if there is any."""
        return self._coming.first()

    def all(self) -> Entries:
        """Return all sessions."""
        return living(self._held.all())

    def _clear(self, before: int) -> None:
        held = self.all()
        self._held = Partials(self._empty, _newest)
        self._held.add(held.take(np.flatnonzero(ends(held) > before)))
        self._spent = 0


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
    dead = removed(entries)
    return entries.take(np.flatnonzero(~dead)) if dead.any() else entries


def _newest(rows: pa.Table, groups: Numbers, count: int) -> pa.Table:
    last = np.empty(count, np.int64)
    last[groups] = np.arange(len(groups))  # of several, the last is assigned: the newest
    return rows.take(pa.array(last))
