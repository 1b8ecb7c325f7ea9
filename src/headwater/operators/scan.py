"""A fold of the user's own over the events of each key, in the order in which they happened.

Events wait until the clock has passed them: then no earlier one can come, and the order is final.

Invariant: what is emitted for a key is the fold over all its events that were not late, ordered by
event time and then by all columns, whatever the order of arrival and the split into steps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from headwater.errors import UsageError
from headwater.operators.columns import check_columns, check_time
from headwater.operators.event_time import split_late, times
from headwater.operators.fold import KNOWN, Folding
from headwater.operators.fold_failures import split_failing_events
from headwater.operators.groups import Keys, Numbers, group
from headwater.operators.memory.numbered_rows import NOWHERE
from headwater.operators.memory.row_by_key import RowByKey
from headwater.operators.memory.timeline import Timeline
from headwater.operators.operator import FOREVER, NEVER, Operator, Step
from headwater.operators.order import order


@dataclass(frozen=True)
class ScanProgress:
    """The events that wait, and the last state of each key."""

    waiting: Timeline
    states: RowByKey


class _Ripe(NamedTuple):
    """Events in the order in which they are folded, the number of each one's key, and the keys."""

    events: pa.Table
    groups: Numbers
    keys: Keys


@dataclass(frozen=True)
class Scan(Operator[ScanProgress]):
    """Fold the events of each key in the order of event time, and emit the state after each event.

    Events with equal times are taken in the order of their columns. An event is taken once the clock
    is after it; an event from before the clock is late, and so is one without an event time. A step
    emits the events it takes key by key, each key's in order of time; the keys in the order of their
    first event. The state is the last state of each key, which stays, and the events that wait; a
    restart finds both as they were. What the fold raises is passed on, and leaves the state as it was;
    a tolerant scan sets the event aside instead.

    >>> from headwater.operators.operator import FOREVER, run
    >>> rows = pa.table({"account": ["a", "a"], "n": [5, 7], "at": pa.array([2, 1], pa.timestamp("us"))})
    >>> def balance(state, event):
    ...     return {"balance": (state["balance"] if state else 0) + event["n"]}
    >>> scan = Scan(balance, ("account",), "at", pa.schema([("balance", pa.int64())]), vectorised=False)
    >>> run(scan, rows, watermark=FOREVER)[-1].out["balance"].to_pylist()
    [7, 12]
    """

    fold: Callable[..., Any]
    by: tuple[str, ...]
    event_time: str
    state_schema: pa.Schema
    vectorised: bool = False
    tolerant: bool = field(default=False, compare=False)
    """Whether an event on which the fold fails is set aside, as if it had not come."""
    key: tuple[str, ...] = field(init=False)

    @property
    def waits(self) -> bool:
        """An event is taken once the clock is after it."""
        return True

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", self.by)

    def output_schema(self, schema: pa.Schema) -> pa.Schema:
        """Return the key, the event time, and the columns of the state."""
        check_columns("scan", self.by, schema)
        check_time("scan", self.event_time, schema)
        for name in self.state_schema.names:
            if name in self._lead() or name == KNOWN:
                raise UsageError(
                    f'the state of scan cannot have a column "{name}"',
                    detail=f"rows out have {', '.join(self._lead())} beside the state",
                    hint="give it another name",
                )
        return pa.schema([*(schema.field(name) for name in self._lead()), *self.state_schema])

    def initial_state(self, schema: pa.Schema) -> ScanProgress:
        """Return a state without keys or events."""
        kept = pa.schema([*(schema.field(name) for name in self.by), *self.state_schema])
        return ScanProgress(Timeline(schema.remove_metadata()), RowByKey(kept))

    def restore_chunk(self, state: ScanProgress, chunk: pa.Table) -> None:
        """Forget the events that were taken, and take over new ones that wait and states of keys."""
        events, states = _part(chunk, "event"), _part(chunk, "state")
        state.waiting.drop(times(chunk, "clock").max(initial=NEVER))
        state.waiting.add(events, times(events, self.event_time))
        keys = group(states, self.by).keys
        state.states.put(keys, state.states.find(keys), states)

    def step(self, state: ScanProgress, rows: pa.Table, watermark: int) -> Step:
        """Fold the events that the clock has passed, and let new ones wait."""
        rows, at, late = split_late(rows, self.event_time, watermark)
        ripe = _ripe(state.waiting.until(watermark), self.by, self.event_time)
        ripe, slots, out, dead = self._fold_or_reject(ripe, state.states)
        ends = np.flatnonzero(np.diff(ripe.groups, append=-1))
        states = out.select([*self.by, *self.state_schema.names]).take(pa.array(ends))
        # From here on nothing fails: a step that is tried again finds the state as it was.
        state.waiting.drop(watermark)
        state.waiting.add(rows, at)
        state.states.put(ripe.keys, slots, states)
        learnt = len(rows) or len(states) or dead is not None
        return Step(out, late, chunk=_chunk(rows, states, watermark) if learnt else None, dead=dead)

    def next_timer(self, state: ScanProgress) -> int | None:
        """Return the clock that has just passed the first event that waits."""
        first = state.waiting.first()
        return None if first is None else first + 1

    def snapshot(self, state: ScanProgress) -> pa.Table:
        """Return the events that wait and the states of all keys."""
        return _chunk(state.waiting.rows(), state.states.rows(), NEVER)

    def _lead(self) -> list[str]:
        return list(dict.fromkeys((*self.by, self.event_time)))

    def _fold_or_reject(
        self, ripe: _Ripe, states: RowByKey
    ) -> tuple[_Ripe, Numbers, pa.Table, pa.Table | None]:
        """Return the events that are folded, where their keys are, the rows out, and what is set aside."""
        slots = states.find(ripe.keys)
        before, dead = self._before(states, slots), None
        try:
            out = self._folded(ripe, before)
        except Exception:  # a user's fold may raise anything
            if not self.tolerant:
                raise
            call = partial(self._call, Folding(self.fold, self.state_schema))
            good, dead = split_failing_events(call, before, ripe)
            ripe, known = _only(ripe, good)
            slots, before = slots[known], before.take(pa.array(known))
            out = self._folded(ripe, before)
        return ripe, slots, out, dead

    def _folded(self, ripe: _Ripe, before: pa.Table) -> pa.Table:
        """Return the rows out: the key and time of each event, and the state after it."""
        schema = self.output_schema(ripe.events.schema)
        if not len(ripe.events):
            return schema.empty_table()
        after = self._call(Folding(self.fold, self.state_schema), before, ripe.events, ripe.groups)
        return pa.Table.from_arrays(
            [*ripe.events.select(self._lead()).columns, *after.columns], schema=schema
        )

    def _call(self, folding: Folding, before: pa.Table, events: pa.Table, groups: Numbers) -> pa.Table:
        return (folding.tables if self.vectorised else folding.rows)(before, events, groups)

    def _before(self, states: RowByKey, slots: Numbers) -> pa.Table:
        nullable = pa.schema([field.with_nullable(True) for field in self.state_schema])
        columns = states.take(slots, *self.state_schema.names).columns
        return pa.Table.from_arrays(columns, schema=nullable).append_column(KNOWN, pa.array(slots != NOWHERE))


def _ripe(events: pa.Table, by: tuple[str, ...], event_time: str) -> _Ripe:
    """Arrange events: keys by their first event, then by their columns; events by time, then by theirs."""
    groups, at = group(events, by), times(events, event_time)
    begins = np.full(len(groups.keys), FOREVER)
    np.minimum.at(begins, groups.of, at)
    sequence = order(events.select(by).take(pa.array(groups.first)), begins)
    rank = np.empty(len(sequence), np.int64)
    rank[sequence] = np.arange(len(sequence))
    of = rank[groups.of]
    places = order(events, of, at)
    return _Ripe(events.take(pa.array(places)), of[places], groups.keys[sequence])


def _only(ripe: _Ripe, good: Numbers) -> tuple[_Ripe, Numbers]:
    """Return some of the events, and the places of the keys that they have."""
    known, groups = np.unique(ripe.groups[good], return_inverse=True)
    return _Ripe(ripe.events.take(pa.array(good)), groups, ripe.keys[known]), known


def _chunk(events: pa.Table, states: pa.Table, watermark: int) -> pa.Table:
    """Return a row for each event that waits and for each state; events from before the clock are taken.

    If there is nothing but the clock to tell, a row tells that.
    """
    event, state = _struct(events), _struct(states)
    more = 0 if len(event) or len(state) else 1
    columns = {
        "event": pa.concat_arrays([event, pa.nulls(len(state) + more, event.type)]),
        "state": pa.concat_arrays([pa.nulls(len(event) + more, state.type), state]),
        "clock": pa.array(np.full(len(event) + len(state) + more, watermark)),
    }
    return pa.table(columns)


def _struct(rows: pa.Table) -> pa.StructArray:
    columns = [column.combine_chunks() for column in rows.columns]
    return pa.StructArray.from_arrays(columns, fields=list(rows.schema))


def _part(chunk: pa.Table, name: str) -> pa.Table:
    return pa.Table.from_struct_array(chunk.column(name).combine_chunks().drop_null())
