"""Sessions with new rows under a new clock: which become one, what is written, published and retracted.

A session is visible if the clock has passed its end, or if it is shown early.

Invariant: the last row out of a session that is visible is what it is now; or, if it is shown early, what it
was when that was due. Of a session that is not visible the last row out, if any, is a retraction.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.operators.event_time import Times
from headwater.operators.groups import Flags, Numbers
from headwater.operators.memory.entries import Entries, arranged
from headwater.operators.windows.early import Early
from headwater.operators.windows.session_state import ends, partials, revisions, with_status
from headwater.operators.windows.windowing import Windowing


@dataclass(frozen=True)
class SessionChange:
    """What new rows and the clock have made of sessions."""

    written: Entries
    """The sessions, in their pieces, that are new or have changed, and the pieces that are gone."""
    published: Entries
    """The sessions to publish: complete if they have ended, and else what is shown of them."""
    retracted: Entries
    """The sessions that were visible and are no more, with the revision that says so."""


@dataclass(frozen=True)
class _Parts:
    """Pieces of known sessions, and sessions of new rows, sorted; those that overlap become one."""

    entries: Entries
    new: Flags
    head: Flags
    """Which are the first piece of a session that was known."""
    session: Numbers
    """The number of the combined session of each."""

    @cached_property
    def opening(self) -> Flags:
        """Tell which are the first of their sessions."""
        found: Flags = np.diff(self.session, prepend=-1) != 0
        return found

    @cached_property
    def same(self) -> Flags:
        """Tell which start where their session does."""
        found: Flags = self.entries.minor == self.entries.minor[self.opening][self.session]
        return found

    def any(self, flags: Flags) -> Flags:
        """Tell which sessions have such a part."""
        return np.logical_or.reduceat(flags, np.flatnonzero(self.opening))

    def greatest(self, numbers: Numbers) -> npt.NDArray[np.int64]:
        """Return the greatest number of each session."""
        return np.maximum.reduceat(numbers, np.flatnonzero(self.opening))


@dataclass(frozen=True)
class Combining:
    """Sessions from one clock to the next: what partial results are of, and what is shown early."""

    windowing: Windowing
    early: Early
    before: int
    """The clock for which known sessions are as they are."""
    watermark: int

    def combined(self, held: Entries, fresh: Entries) -> SessionChange:
        """Put sessions together that overlap, where one is of new rows, or the clock has come to it."""
        parts = _touching(held, fresh, self._due(held))
        if not len(parts.entries):
            return SessionChange(parts.entries, parts.entries, parts.entries)
        end = parts.greatest(ends(parts.entries))
        cut = parts.opening | (np.diff(self.early.slots(parts.entries.minor, self.watermark), prepend=0) != 0)
        pieces = self._pieces(parts, cut, end)
        seen = self._seen(parts)
        visible = (end <= self.watermark) | self.early.shown(pieces.take(_heads(parts, cut)), self.watermark)
        out = visible & self._news(parts, seen, end)
        # A session that is published again replaces itself; any other that was visible has to go.
        away = seen & ~(parts.same & visible[parts.session])
        again = seen & (away | out[parts.session])
        revision = parts.greatest(revisions(parts.entries) + again + (away & parts.same))
        pieces = _restated(pieces, ends(pieces), revision[parts.session[cut]])
        written = np.flatnonzero(parts.any(parts.new | again | ~cut)[parts.session[cut]])
        return SessionChange(
            _concatenated(pieces.take(written), _removed(parts.entries, _swallowed(parts, cut), 0)),
            self._results(pieces, parts.session[cut], out),
            _removed(parts.entries, np.flatnonzero(away), 1),
        )

    def _due(self, held: Entries) -> Flags:
        """Tell which known pieces the clock has come to: to the session's end, or to a time to show them."""
        ended = (ends(held) > self.before) & (ends(held) <= self.watermark)
        passed = self.early.passed(self.before), self.early.passed(self.watermark)
        return ended | ((held.minor >= passed[0]) & (held.minor < passed[1]))

    def _seen(self, parts: _Parts) -> Flags:
        """Tell which parts are the heads of sessions that were visible."""
        shown = self.early.shown(parts.entries, self.before)
        return parts.head & ((ends(parts.entries) <= self.before) | shown)

    def _news(self, parts: _Parts, seen: Flags, end: Times) -> Flags:
        """Tell which sessions are to be published, if they are visible."""
        ended = ends(parts.entries) <= self.before
        now = parts.any(parts.new | ~ended)
        # What was seen of a part is replaced at once, so that nothing disappears that is still there.
        replaced = parts.any(seen & (ended | ~parts.same))
        grown = self.early.grown(parts.entries, parts.new, parts.session, self.before, self.watermark)
        return np.where(end <= self.watermark, now, replaced | grown)

    def _pieces(self, parts: _Parts, cut: Flags, end: Times) -> Entries:
        """Merge parts of a session from one cut to the next."""
        rows = self._merged(partials(parts.entries), np.cumsum(cut) - 1)
        first = parts.entries.take(np.flatnonzero(cut))
        of = end[parts.session[cut]]
        return Entries(first.major, first.minor, with_status(rows, of, of * 0, np.zeros(len(of), np.bool_)))

    def _results(self, pieces: Entries, session: Numbers, out: Flags) -> Entries:
        """Merge the pieces of sessions that have ended, and take the first of the others."""
        head = np.diff(session, prepend=-1) != 0
        some = np.flatnonzero(out[session] & (head | (ends(pieces) <= self.watermark)))
        first = pieces.take(np.flatnonzero(out[session] & head))
        rows = self._merged(partials(pieces.take(some)), (np.cumsum(out) - 1)[session[some]])
        return Entries(
            first.major, first.minor, with_status(rows, ends(first), revisions(first), out[out] & False)
        )

    def _merged(self, rows: pa.Table, groups: Numbers) -> pa.Table:
        count = int(groups[-1]) + 1 if len(groups) else 0
        return rows if count == len(rows) else self.windowing.merge(rows, groups, count)


def _touching(held: Entries, fresh: Entries, due: Flags) -> _Parts:
    """Return new sessions, and the known ones that overlap them or are due, with all their pieces."""
    more = np.zeros(len(fresh), np.bool_)
    new, head, due = (
        np.append(np.zeros(len(held), np.bool_), ~more),
        np.append(_opening(held), more),
        np.append(due, more),
    )
    places = arranged(np.append(held.major, fresh.major), np.append(held.minor, fresh.minor))
    entries, new, head, due = _concatenated(held, fresh).take(places), new[places], head[places], due[places]
    session = np.cumsum(_opening(entries)) - 1
    touched = np.zeros(len(session), np.bool_)
    touched[session[new | due]] = True
    some = np.flatnonzero(touched[session])
    return _Parts(
        entries.take(some), new[some], head[some], np.cumsum(np.diff(session[some], prepend=-1) != 0) - 1
    )


def _opening(parts: Entries) -> Flags:
    """Tell which of sorted sessions overlap none before them of their key."""
    by_end = np.argsort(ends(parts), kind="stable")
    rank = np.empty(len(parts), np.int64)
    rank[by_end] = np.arange(len(parts))
    key = np.cumsum(np.diff(parts.major, prepend=-1) != 0) - 1
    # The latest end so far of the same key: a later key outranks all before it.
    latest = np.maximum.accumulate(key * len(parts) + rank) - key * len(parts)
    reach = ends(parts)[by_end[latest]]
    return np.append(True, (key[1:] != key[:-1]) | (parts.minor[1:] >= reach[:-1]))[: len(parts)]


def _heads(parts: _Parts, cut: Flags) -> Numbers:
    """Return which pieces are the first of their sessions."""
    return np.flatnonzero(parts.opening[cut])


def _swallowed(parts: _Parts, cut: Flags) -> Numbers:
    """Return which known pieces have become part of one that starts before them."""
    starts = parts.entries.minor[cut][np.cumsum(cut) - 1]
    return np.flatnonzero(~parts.new & (parts.entries.minor != starts))


def _restated(entries: Entries, end: Times, revision: Numbers, removed: bool = False) -> Entries:
    rows = with_status(partials(entries), end, revision, np.full(len(entries), removed))
    return Entries(entries.major, entries.minor, rows)


def _removed(parts: Entries, indices: Numbers, more: int) -> Entries:
    removed = parts.take(indices)
    return _restated(removed, ends(removed), revisions(removed) + more, removed=True)


def _concatenated(first: Entries, second: Entries) -> Entries:
    rows = pa.concat_tables([first.rows, second.rows]).combine_chunks()
    return Entries(np.append(first.major, second.major), np.append(first.minor, second.minor), rows)
