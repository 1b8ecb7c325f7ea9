"""Windows that last as long as the events of a key follow each other: they end after a gap.

A row belongs to every session that it is less than ``gap`` away from, and makes one of them. To know
that a row comes too late for a session, sessions are remembered for ``gap`` after they are settled.

Invariant: the sessions held of a key are at least ``gap`` apart, and every one that the clock has
passed is published as it is now; whatever else was published of them is retracted.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta

import numpy as np
import pyarrow as pa

from headwater.clock import MICROSECOND
from headwater.operators.event_time import Times, times
from headwater.operators.groups import Numbers
from headwater.operators.operator import NEVER, Step
from headwater.operators.windows.partials import Entries, Flags, arranged
from headwater.operators.windows.sessions import (
    Change,
    Sessions,
    combined,
    ends,
    living,
    partials,
    revisions,
    told,
)
from headwater.operators.windows.told import heard, heard_clock, placed, tell
from headwater.operators.windows.windowing import (
    END,
    REVISION,
    START,
    Windowed,
    Windowing,
    bounded,
    grouped,
    timed,
)


@dataclass(frozen=True)
class Session(Windowed[Sessions]):
    """Aggregate the rows of each key that are less than ``gap`` apart.

    A session lasts from its first event until ``gap`` after its last one, and is published when the
    clock has come to its end. A row is late when it belongs to a session that has ended, or did so
    longer ago than late rows are to correct it; when it would be such a session alone; and if it has no
    time. A session that late rows change is published again; one that has become part of another, or
    goes on, is retracted. Rows come out in the order of their sessions' starts, then of their keys. The
    state is a partial result for each session, until it has been settled for ``gap``; a restart finds
    it as it was.
    """

    windowing: Windowing
    gap: timedelta
    key: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", self.windowing.by)

    @property
    def event_time_out(self) -> str:
        """The column out that is the event time of results: how old a session's start is has no bound."""
        return END

    def output(self, schema: pa.Schema) -> pa.Schema:
        """Return the key, the window, the aggregates, and what is told of the result."""
        return self.windowing.output(schema, retracts=self.windowing.corrects)

    def begin(self, schema: pa.Schema) -> Sessions:
        """Return a state without sessions."""
        return Sessions(self.windowing.state_schema(schema))

    def absorb(self, state: Sessions, chunk: pa.Table) -> None:
        """Take over sessions as they have become."""
        rows = heard(chunk, "session")
        members = self.windowing.members(state.members, rows.remove_column(0))
        state.put(Entries(members, rows.column(0).to_numpy(), rows.remove_column(0)))
        state.clock = max(state.clock, heard_clock(chunk))
        state.drop(self._forgotten(state.clock), state.clock)

    def step(self, state: Sessions, rows: pa.Table, clock: int) -> Step:
        """Add rows to their sessions, and publish those that have ended or changed."""
        rows = rows.combine_chunks()
        at, groups = times(rows, self.windowing.event_time), grouped(rows, self.windowing.by)
        members = state.members.numbers(groups.keys)
        known = state.of(members)
        late = self._late(known, members, at, groups.of, self.windowing.settled(clock))
        away = self.windowing.late_rows(rows.filter(pa.array(late)), at[late], at[late], clock)
        fresh = self._fresh(rows.filter(pa.array(~late)), at[~late], groups.of[~late], members)
        live = known.take(np.flatnonzero(ends(known) > self.windowing.settled(clock)))
        change = combined(self.windowing, live, fresh, state.clock, clock)
        state.put(change.written)
        out = self._out(state, change, clock, self.output(rows.schema))
        state.clock = max(state.clock, clock)
        state.drop(self._forgotten(clock), clock)
        parts = {"session": placed(change.written, by_lead=False)}
        return Step(out, away, chunk=tell(parts, clock) if len(change.written) or len(out) else None)

    def wake(self, state: Sessions) -> int | None:
        """Return the next end of a session, or the time to forget one."""
        return state.wake(self._margin())

    def promise(self, clock: int) -> int:
        """Return the end of the first session that may still be published."""
        return self.windowing.settled(clock)

    def snapshot(self, state: Sessions) -> pa.Table:
        """Return all sessions."""
        return tell({"session": placed(state.all(), by_lead=False)}, state.clock)

    def _margin(self) -> int:
        return (self.gap + self.windowing.keep) // MICROSECOND

    def _forgotten(self, clock: int) -> int:
        """Return the time up to which sessions that have ended can decide nothing more."""
        return clock if clock == NEVER else bounded(clock - self._margin())

    def _late(self, known: Entries, members: Numbers, at: Times, of: Numbers, settled: int) -> Flags:
        """Tell which rows belong to a session that is settled, or would be one alone."""
        bars = np.full(len(members), NEVER)
        done = np.flatnonzero(ends(known) <= settled)
        sorter = np.argsort(members)
        groups = sorter[np.searchsorted(members, known.lead[done], sorter=sorter)]
        np.maximum.at(bars, groups, ends(known)[done])
        # A row that is open alone, and begins before a settled session's end, overlaps that session.
        return ~timed(at) | (at + self._gap() <= settled) | (at < bars[of])

    def _fresh(self, rows: pa.Table, at: Times, groups: Numbers, members: Numbers) -> Entries:
        """Return the sessions that new rows make among themselves."""
        places = arranged(groups, at)
        own, when = groups[places], at[places]
        new = (np.diff(own, prepend=-1) != 0) | (np.diff(when, prepend=0) >= self._gap())
        of = np.empty(len(places), np.int64)
        of[places] = np.cumsum(new) - 1
        first, last = places[new], places[np.append(new[1:], True)[: len(new)]]
        made = self.windowing.partials(rows, at, of, first)
        nothing = np.zeros(len(first), np.int64)
        rows = told(made, at[last] + self._gap(), nothing, nothing.astype(np.bool_))
        return Entries(members[groups[first]], at[first], rows)

    def _out(self, state: Sessions, change: Change, clock: int, schema: pa.Schema) -> pa.Table:
        """Return the sessions that have ended, those that are corrected, and those that are retracted."""
        written = living(change.written)
        corrected = written.take(np.flatnonzero(ends(written) <= state.clock))
        out = [self._results(some, schema) for some in (state.ended(clock), corrected)]
        out += [self._retracted(change.retracted, schema)] if self.windowing.corrects else []
        return self.windowing.arranged(pa.concat_tables(out).combine_chunks())

    def _results(self, some: Entries, schema: pa.Schema) -> pa.Table:
        count = len(some)
        more = [pa.array(np.zeros(count, np.bool_))] if self.windowing.corrects else []
        made = [pa.array(revisions(some).astype(np.int32)), pa.array(np.ones(count, np.bool_)), *more]
        columns = self.windowing.results(partials(some), some.then, ends(some), made)
        return pa.Table.from_arrays(columns, schema=schema)

    def _retracted(self, some: Entries, schema: pa.Schema) -> pa.Table:
        """Return rows of what identifies sessions, and the rest null."""
        known = self._results(some, schema)
        kept = {*self.windowing.by, START, END, REVISION}
        columns = [
            column if name in kept else pa.nulls(len(some), schema.field(name).type)
            for name, column in zip(schema.names, known.columns, strict=True)
        ]
        columns[-1] = pa.array(np.ones(len(some), np.bool_))
        return pa.Table.from_arrays(columns, schema=schema)

    def _gap(self) -> int:
        return self.gap // MICROSECOND
