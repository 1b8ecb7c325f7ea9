"""The sessions that are held: found by key, by when they end, and changed by writing them anew.

What is written last of a session counts; a session that has become part of another is written once more,
as gone. What is out of date is cleared away when it is half of everything.

Invariant: a session of which the clock has passed the end is visible, that is published as it is; and
no other is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from headwater.operators.event_time import Times
from headwater.operators.groups import Numbers
from headwater.operators.operator import NEVER
from headwater.operators.timeline import Timeline
from headwater.operators.windows.members import Members
from headwater.operators.windows.partials import Entries, Flags, Partials, arranged, distinct
from headwater.operators.windows.windowing import Windowing, bounded

_TOLD = [pa.field("_end", pa.int64()), pa.field("_revision", pa.int64()), pa.field("_gone", pa.bool_())]
_END, _REVISION, _GONE = -3, -2, -1
_WHERE = pa.schema([("member", pa.int64()), ("start", pa.int64())])


class Sessions:
    """Sessions by the number of their key and their start; and the clock of the last step."""

    def __init__(self, partials: pa.Schema):
        self.members = Members()
        self.clock = NEVER
        self._empty = pa.schema([*partials, *_TOLD]).empty_table()
        self._held = Partials(self._empty, _newest)
        self._ending, self._fading = Timeline(_WHERE), Timeline(_WHERE)
        self._spent = 0

    def __len__(self) -> int:
        return len(self._held)

    def of(self, members: Numbers) -> Entries:
        """Return the sessions of some keys."""
        found = self._held.within(members, np.full(len(members), NEVER), np.full(len(members), -NEVER - 1))
        return living(found)

    def put(self, written: Entries) -> None:
        """Write sessions, in place of what was written of them before."""
        self._held.add(written)
        self._spent += int(gone(written).sum())
        there = living(written)
        where = pa.Table.from_arrays([pa.array(there.lead), pa.array(there.then)], schema=_WHERE)
        self._ending.add(where, ends(there))
        self._fading.add(where, ends(there))

    def ended(self, clock: int) -> Entries:
        """Return the sessions that the clock has passed since the last step."""
        where = self._ending.until(bounded(clock + 1))
        found = self._at(where["member"].to_numpy(), where["start"].to_numpy())
        return found.take(np.flatnonzero((ends(found) > self.clock) & (ends(found) <= clock)))

    def drop(self, before: int, clock: int) -> None:
        """Forget the sessions that have ended by a time, and that those up to the clock are to end."""
        self._ending.drop(bounded(clock + 1))
        self._spent += len(self._fading)
        self._fading.drop(bounded(before + 1))
        self._spent -= len(self._fading)
        if 2 * self._spent > len(self._held):
            self._clear(before)
        if self.members.crowded:
            self.members.keep(np.unique(self._held.leads()))

    def wake(self, margin: int) -> int | None:
        """Return the next end of a session, or the time to forget one, a margin after its end."""
        first, last = self._ending.first(), self._fading.first()
        found = [] if first is None else [first]
        return min([*found, *([] if last is None else [last + margin])], default=None)

    def all(self) -> Entries:
        """Return all sessions."""
        return living(self._held.all())

    def _at(self, members: Numbers, starts: Times) -> Entries:
        members, starts = distinct(members, starts)
        return living(self._held.within(members, starts, starts + 1))

    def _clear(self, before: int) -> None:
        held = self.all()
        self._held = Partials(self._empty, _newest)
        self._held.add(held.take(np.flatnonzero(ends(held) > before)))
        self._spent = 0


@dataclass(frozen=True)
class Change:
    """What new rows have made of the sessions of their keys."""

    written: Entries
    """The sessions that are new or have changed, and those that are gone."""
    retracted: Entries
    """The sessions that were visible and are no more, with the revision that says so."""


def told(partials: pa.Table, end: Times, revision: Numbers, gone: Flags) -> pa.Table:
    """Return partial results with what is told of the sessions."""
    columns = [*partials.columns, *map(pa.array, (end, revision, gone))]
    return pa.Table.from_arrays(columns, schema=pa.schema([*partials.schema, *_TOLD]))


def ends(entries: Entries) -> Times:
    """Return when sessions end."""
    found: Times = entries.rows.column(_END).to_numpy()
    return found


def revisions(entries: Entries) -> Numbers:
    """Return with which revision sessions are, or will be, published."""
    found: Numbers = entries.rows.column(_REVISION).to_numpy()
    return found


def gone(entries: Entries) -> Flags:
    """Tell which sessions have become part of others."""
    found: Flags = entries.rows.column(_GONE).to_numpy()
    return found


def partials(entries: Entries) -> pa.Table:
    """Return the partial results of sessions."""
    return entries.rows.select(list(range(len(entries.rows.columns) - len(_TOLD))))


def living(entries: Entries) -> Entries:
    """Return the sessions that are not gone."""
    dead = gone(entries)
    return entries.take(np.flatnonzero(~dead)) if dead.any() else entries


def combined(windowing: Windowing, known: Entries, fresh: Entries, before: int, clock: int) -> Change:
    """Put sessions that overlap together, where one of them is of new rows.

    ``before`` is the clock up to which the known ones are visible.
    """
    parts, whole, new = _touching(known, fresh)
    visible = (ends(parts) <= before) & ~new
    first = np.flatnonzero(np.diff(whole, prepend=-1))
    end = np.maximum.reduceat(ends(parts), first) if len(first) else ends(parts)
    same = parts.then == parts.then[first][whole]
    # A session that is published again replaces itself; any other that was visible has to go.
    away = visible & ~(same & (end <= clock)[whole])
    numbers = revisions(parts) + visible + (away & same)
    revision = np.maximum.reduceat(numbers, first) if len(first) else numbers
    rows = windowing.merge(partials(parts), whole, len(first)) if len(first) else partials(parts)
    made = Entries(parts.lead[first], parts.then[first], told(rows, end, revision, np.zeros(len(end), bool)))
    return Change(
        _both(made, _gone(parts, np.flatnonzero(~new & ~same), 0)), _gone(parts, np.flatnonzero(away), 1)
    )


def _touching(known: Entries, fresh: Entries) -> tuple[Entries, Numbers, Flags]:
    """Return new sessions and those that overlap them, sorted; each one's whole; which are new."""
    lead, then = np.concatenate([known.lead, fresh.lead]), np.concatenate([known.then, fresh.then])
    rows = pa.concat_tables([known.rows, fresh.rows]).combine_chunks()
    new = np.arange(len(lead)) >= len(known)
    places = arranged(lead, then)
    parts, new = Entries(lead, then, rows).take(places), new[places]
    whole = np.cumsum(_opening(parts)) - 1
    touched = np.zeros(len(whole), np.bool_)
    touched[whole[new]] = True
    some = np.flatnonzero(touched[whole])
    return parts.take(some), np.cumsum(np.diff(whole[some], prepend=-1) != 0) - 1, new[some]


def _opening(parts: Entries) -> Flags:
    """Tell which of sorted sessions overlap none before them of their key."""
    by_end = np.argsort(ends(parts), kind="stable")
    rank = np.empty(len(parts), np.int64)
    rank[by_end] = np.arange(len(parts))
    key = np.cumsum(np.diff(parts.lead, prepend=-1) != 0) - 1
    # The latest end so far of the same key: a later key outranks all before it.
    latest = np.maximum.accumulate(key * len(parts) + rank) - key * len(parts)
    reach = ends(parts)[by_end[latest]]
    return np.append(True, (key[1:] != key[:-1]) | (parts.then[1:] >= reach[:-1]))[: len(parts)]


def _gone(parts: Entries, places: Numbers, more: int) -> Entries:
    some = parts.take(places)
    rows = told(partials(some), ends(some), revisions(some) + more, np.ones(len(some), bool))
    return Entries(some.lead, some.then, rows)


def _both(some: Entries, others: Entries) -> Entries:
    rows = pa.concat_tables([some.rows, others.rows]).combine_chunks()
    return Entries(np.append(some.lead, others.lead), np.append(some.then, others.then), rows)


def _newest(rows: pa.Table, groups: Numbers, count: int) -> pa.Table:
    last = np.empty(count, np.int64)
    last[groups] = np.arange(len(groups))  # of several, the last is assigned: the newest
    return rows.take(pa.array(last))
