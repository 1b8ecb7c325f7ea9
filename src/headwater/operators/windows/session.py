"""Windows that last as long as the events of a key follow each other: they end after a gap.

A row belongs to every session that it is less than ``gap`` away from, and makes one of them. To know
that a row comes too late for a session, sessions are remembered for ``gap`` after they are settled.

Invariant: the sessions held of a key are at least ``gap`` apart, and every one that the clock has
passed is published as it is now, every open one as ``every`` asks for it; whatever else was published of
them is retracted.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta

import numpy as np
import pyarrow as pa

from headwater.durations import MICROSECOND
from headwater.operators.event_time import NEVER, Times, times
from headwater.operators.groups import Flags, Numbers
from headwater.operators.memory.entries import Entries, arranged
from headwater.operators.memory.operator_memory import OperatorMemory
from headwater.operators.operator import Step
from headwater.operators.windows.early import Early
from headwater.operators.windows.session_merge import Combining, SessionChange
from headwater.operators.windows.session_state import Sessions, ends, partials, revisions, with_status
from headwater.operators.windows.window_memory import window_memory
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
    clock has come to its end; with ``every``, also whenever the clock passes a multiple of that, with the
    rows from before it, or whenever so many more rows have come to the session. A row is late when it
    belongs to a session that has ended, or did so longer ago than late rows are to correct it; when it
    would be such a session alone; and if it has no time. A session that late rows change is published
    again; one that has become part of another, or goes on and is not shown, is retracted. Rows come out in
    the order of their sessions' starts, then of their keys. The state is a partial result for each
    session (with a length of ``every``, for each stretch of it that is not shown yet), until it has been
    settled for ``gap``; a restart finds it as it was.
    """

    windowing: Windowing
    gap: timedelta
    every: timedelta | int | None = None
    """When open sessions are published too: at multiples of a length of time, or of a number of rows."""
    key: tuple[str, ...] = field(init=False)

    @property
    def event_time_out(self) -> str:
        """The column out that is the event time of results: how old a session's start is has no bound."""
        return END

    def output_schema(self, schema: pa.Schema) -> pa.Schema:
        """Return the key, the window, the aggregates, and what is told of the result."""
        return self.windowing.output_schema(schema, retracts=self._retracts)

    def initial_state(self, schema: pa.Schema) -> Sessions:
        """Return a state without sessions."""
        return Sessions(self._held.state_schema(schema), cut=self._early.period > 0)

    def memory(self, state: Sessions) -> OperatorMemory:
        """Return the sessions, in which order they are due, and the numbers of keys."""
        in_time = {"ending": state.ending, "fading": state.fading, "coming": state.coming}
        return window_memory(
            state,
            {"sessions": state.held, **{name: each.runs for name, each in in_time.items()}},
            {"spent": (state, "spent"), **{name: (each, "added") for name, each in in_time.items()}},
        )

    def step(self, state: Sessions, rows: pa.Table, watermark: int) -> Step:
        """Add rows to their sessions, and publish those that have ended or changed."""
        rows = rows.combine_chunks()
        at, groups = times(rows, self.windowing.event_time), grouped(rows, self.windowing.by)
        key_ids = state.key_ids.numbers(groups.keys)
        known = state.of(np.union1d(key_ids, state.due(watermark, self._early.passed(watermark))))
        late = self._is_late(at, key_ids[groups.of], known, watermark)
        rows, at, away = self.windowing.split_late(rows, at, late, at, watermark)
        fresh = self._fresh(rows, at, key_ids[groups.of[~late]], watermark)
        live = known.take(np.flatnonzero(ends(known) > self.windowing.correction_horizon(state.watermark)))
        change = Combining(self._held, self._early, state.watermark, watermark).combined(live, fresh)
        state.put(change.written)
        out = self._out(change, state.watermark, watermark, self.output_schema(rows.schema))
        state.watermark = max(state.watermark, watermark)
        self._drop(state)
        return Step(out, away)

    def next_timer(self, state: Sessions) -> int | None:
        """Return the next end of a session, or time to show what has come to one, or to forget one."""
        found, coming = state.next_timer(self._margin()), state.coming.first()
        shown = [] if coming is None else [self._early.following(coming)]
        return min(shown if found is None else [found, *shown], default=None)

    def output_watermark(self, watermark: int) -> int:
        """Return the end of the first session that may still be published, as far as it is shown."""
        horizon = self.windowing.correction_horizon(watermark)
        return min(horizon, self._early.passed(watermark)) if self._early.period else horizon

    def _is_late(self, at: Times, key_ids: Numbers, known: Entries, watermark: int) -> Flags:
        """Tell which rows belong to a session that is settled, or would be one alone."""
        horizon = self.windowing.correction_horizon(watermark)
        alone, part = at + self._gap() <= horizon, at < _bars(known, key_ids, horizon)
        late: Flags = ~timed(at) | alone | part
        return late

    def _margin(self) -> int:
        return (self.gap + self.windowing.keep) // MICROSECOND

    @property
    def _early(self) -> Early:
        return Early(self.every)

    @property
    def _held(self) -> Windowing:
        return self._early.held(self.windowing)

    @property
    def _retracts(self) -> bool:
        """Whether what was published may have to go: it was corrected, or was not finished."""
        return self.windowing.corrects or self.every is not None

    def _drop(self, state: Sessions) -> None:
        """Forget the sessions that can decide nothing more."""
        watermark = state.watermark
        before = watermark if watermark == NEVER else bounded(watermark - self._margin())
        state.drop(before, watermark, self._early.passed(watermark))

    def _fresh(self, rows: pa.Table, at: Times, key_ids: Numbers, watermark: int) -> Entries:
        """Return the sessions that new rows make among themselves, in pieces."""
        places = arranged(key_ids, at)
        own, when = key_ids[places], at[places]
        new = (np.diff(own, prepend=-1) != 0) | (np.diff(when, prepend=0) >= self._gap())
        new |= np.diff(self._early.slots(when, watermark), prepend=0) != 0
        of = np.empty(len(places), np.int64)
        of[places] = np.cumsum(new) - 1
        first, last = places[new], places[np.append(new[1:], True)[: len(new)]]
        made = self._held.partials(rows, at, of, first)
        nothing = np.zeros(len(first), np.int64)
        rows = with_status(made, at[last] + self._gap(), nothing, nothing.astype(np.bool_))
        return Entries(key_ids[first], at[first], rows)

    def _out(self, change: SessionChange, before: int, watermark: int, schema: pa.Schema) -> pa.Table:
        """Return the sessions that are published, and those that are retracted."""
        out = [self._results(change.published, watermark, schema)]
        out += [self._retracted(change.retracted, before, schema)] if self._retracts else []
        return self.windowing.arranged(pa.concat_tables(out).combine_chunks())

    def _results(self, sessions: Entries, watermark: int, schema: pa.Schema) -> pa.Table:
        """Return sessions as they are, or were, published at a clock."""
        more = [pa.array(np.zeros(len(sessions), np.bool_))] if self._retracts else []
        status = [
            pa.array(revisions(sessions).astype(np.int32)),
            pa.array(ends(sessions) <= watermark),
            *more,
        ]
        until = self._early.until(sessions, watermark, self._gap())
        columns = self.windowing.results(partials(sessions), sessions.minor, until, status)
        return pa.Table.from_arrays(columns, schema=schema)

    def _retracted(self, sessions: Entries, watermark: int, schema: pa.Schema) -> pa.Table:
        """Return rows of what identifies sessions, and the rest null."""
        known = self._results(sessions, watermark, schema)
        kept = {*self.windowing.by, START, END, REVISION}
        columns = [
            column if name in kept else pa.nulls(len(sessions), schema.field(name).type)
            for name, column in zip(schema.names, known.columns, strict=True)
        ]
        columns[-1] = pa.array(np.ones(len(sessions), np.bool_))
        return pa.Table.from_arrays(columns, schema=schema)

    def _gap(self) -> int:
        return self.gap // MICROSECOND


def _bars(held: Entries, key_ids: Numbers, horizon: int) -> Times:
    """Return for each key the end of its last session that is settled.

    A row that is open alone, and begins before that end, overlaps that session.
    """
    keys, of = np.unique(np.append(key_ids, held.major), return_inverse=True)
    bars = np.full(len(keys), NEVER)
    done = ends(held) <= horizon
    np.maximum.at(bars, of[len(key_ids) :][done], ends(held)[done])
    return bars[of[: len(key_ids)]]
