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
from headwater.operators.event_time import FOREVER, times
from headwater.operators.fold import KNOWN, Folding
from headwater.operators.fold_failures import split_failing_events
from headwater.operators.groups import Numbers
from headwater.operators.late_rows import split_late
from headwater.operators.memory.key_hash import KeyHashes, hashed_groups
from headwater.operators.memory.operator_memory import OperatorMemory
from headwater.operators.memory.row_by_key import RowByKey
from headwater.operators.memory.rows_in_time import RowsInTime
from headwater.operators.memory.slots import slots_of_keys
from headwater.operators.operator import Operator, Step
from headwater.operators.order import order


@dataclass(frozen=True)
class ScanProgress:
    """The events that wait, and the last state of each key."""

    waiting: RowsInTime
    states: RowByKey


class _Ripe(NamedTuple):
    """Events in the order in which they are folded, the number of each one's key, and the keys."""

    events: pa.Table
    groups: Numbers
    keys: KeyHashes


@dataclass(frozen=True)
class Scan(Operator[ScanProgress]):
    """Fold the events of each key in the order of event time, and emit the state after each event.

    Events with equal times are taken in the order of their columns. An event is taken once the clock
    is after it; an event from before the clock is late, and so is one without an event time. A step
    emits the events it takes key by key, each key's in order of time; the keys in the order of their
    first event. The state is the last state of each key, which stays, and the events that wait; a
    restart finds both as they were. What the fold raises is passed on, and leaves the state as it was;
    a tolerant scan sets the event aside instead.

    >>> from headwater.operators.event_time import FOREVER
    >>> from headwater.operators.operator import run
    >>> rows = pa.table({"account": ["a", "a"], "n": [5, 7], "at": pa.array([2, 1], pa.timestamp("us"))})
    >>> def balance(state, event):
    ...     return {"balance": (state["balance"] if state else 0) + event["n"]}
    >>> scan = Scan(balance, ("account",), "at", pa.schema([("balance", pa.int64())]), vectorised=False)
    >>> run(scan, rows, watermark=FOREVER)[-1].out["balance"].to_pylist()
    [7, 12]
    """

    version = 3
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
        return ScanProgress(RowsInTime(schema.remove_metadata()), RowByKey(self.state_schema))

    def memory(self, state: ScanProgress) -> OperatorMemory:
        """Return the events that wait, and the states of keys."""
        return OperatorMemory(
            {"waiting": state.waiting.runs, "states": state.states.runs}, {"added": (state.waiting, "added")}
        )

    def step(self, state: ScanProgress, rows: pa.Table, watermark: int) -> Step:
        """Fold the events that the clock has passed, and let new ones wait."""
        rows, at, late = split_late(rows, self.event_time, watermark)
        ripe = _ripe(state.waiting.until(watermark), self.by, self.event_time)
        ripe, out, dead = self._fold_or_reject(ripe, state.states)
        ends = np.flatnonzero(np.diff(ripe.groups, append=-1))
        states = out.select(self.state_schema.names).take(pa.array(ends))
        # From here on nothing fails: a step that is tried again finds the state as it was.
        state.waiting.drop(watermark)
        state.waiting.add(rows, at, slots_of_keys(rows, self.by))
        state.states.put(ripe.keys, states)
        return Step(out, late, dead=dead)

    def next_timer(self, state: ScanProgress) -> int | None:
        """Return the clock that has just passed the first event that waits."""
        first = state.waiting.first()
        return None if first is None else first + 1

    def _lead(self) -> list[str]:
        return list(dict.fromkeys((*self.by, self.event_time)))

    def _fold_or_reject(self, ripe: _Ripe, states: RowByKey) -> tuple[_Ripe, pa.Table, pa.Table | None]:
        """Return the events that are folded, the rows out, and what is set aside."""
        before, dead = self._before(states, ripe.keys), None
        try:
            out = self._folded(ripe, before)
        except Exception:  # a user's fold may raise anything
            if not self.tolerant:
                raise
            call = partial(self._call, Folding(self.fold, self.state_schema))
            good, dead = split_failing_events(call, before, ripe)
            ripe, known = _only(ripe, good)
            out = self._folded(ripe, before.take(pa.array(known)))
        return ripe, out, dead

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

    def _before(self, states: RowByKey, keys: KeyHashes) -> pa.Table:
        known, rows = states.find(keys)
        return rows.append_column(KNOWN, pa.array(known))


def _ripe(events: pa.Table, by: tuple[str, ...], event_time: str) -> _Ripe:
    """Arrange events: keys by their first event, then by their columns; events by time, then by theirs."""
    groups, at = hashed_groups(events, by), times(events, event_time)
    begins = np.full(len(groups.first), FOREVER)
    np.minimum.at(begins, groups.of, at)
    sequence = order(events.select(by).take(pa.array(groups.first)), begins)
    rank = np.empty(len(sequence), np.int64)
    rank[sequence] = np.arange(len(sequence))
    of = rank[groups.of]
    places = order(events, of, at)
    return _Ripe(events.take(pa.array(places)), of[places], groups.keys.take(sequence))


def _only(ripe: _Ripe, good: Numbers) -> tuple[_Ripe, Numbers]:
    """Return some of the events, and the places of the keys that they have."""
    known, groups = np.unique(ripe.groups[good], return_inverse=True)
    return _Ripe(ripe.events.take(pa.array(good)), groups, ripe.keys.take(known)), known
