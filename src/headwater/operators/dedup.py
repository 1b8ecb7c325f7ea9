"""Rows that have come before are left out: the first of a key to arrive is passed on, at once.

A row that is not late is at least ``clock - within``, and so ``within`` or more away from a time that
is not after ``clock - 2 * within``: such a time decides nothing more.

Invariant: rows of a key that were passed on are at least ``within`` apart.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.durations import MICROSECOND
from headwater.operators.columns import check_columns, check_time
from headwater.operators.event_time import NEVER, Times
from headwater.operators.groups import Numbers, firsts, number, pairs
from headwater.operators.late_rows import split_late
from headwater.operators.memory.key_hash import hashed_groups
from headwater.operators.memory.key_ids import KeyIds
from headwater.operators.memory.operator_memory import OperatorMemory
from headwater.operators.memory.spans import Spans
from headwater.operators.operator import Operator, Step


@dataclass(frozen=True)
class DedupState:
    """When rows were passed on, and the numbers of their keys."""

    spans: Spans
    key_ids: KeyIds = field(default_factory=KeyIds)

    def drop(self, before: int) -> None:
        """Forget the rows from before a time."""
        self.spans.drop(before)
        if self.key_ids.crowded:
            self.key_ids.keep(self.spans.keys())


@dataclass(frozen=True)
class Dedup(Operator[DedupState]):
    """Leave out a row whose event time is less than ``within`` away from one of its key that was passed on.

    Rows are taken, and emitted, in the order in which they come. A row from before the clock less
    ``within`` is late, and so is one without an event time. The state is the key and the time of each
    row that was passed on, until the clock is twice ``within`` ahead of it; a restart finds it as it
    was.

    >>> from headwater.operators.event_time import NEVER
    >>> rows = pa.table({"id": ["a", "b", "a"], "at": pa.array([1, 2, 3], pa.timestamp("us", "UTC"))})
    >>> dedup = Dedup(on=("id",), within=timedelta(hours=1), event_time="at")
    >>> step = dedup.step(dedup.initial_state(rows.schema), rows, watermark=NEVER)
    >>> step.out["id"].to_pylist(), step.duplicates
    (['a', 'b'], 1)
    """

    version = 3
    on: tuple[str, ...]
    within: timedelta
    event_time: str
    key: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", self.on)

    def output_schema(self, schema: pa.Schema) -> pa.Schema:
        """Return the schema of the rows as they came."""
        check_columns("dedup", self.on, schema)
        check_time("dedup", self.event_time, schema)
        return schema

    def initial_state(self, schema: pa.Schema) -> DedupState:
        """Return an empty memory."""
        return DedupState(Spans(self._width()))

    def memory(self, state: DedupState) -> OperatorMemory:
        """Return times and the numbers of keys."""
        return OperatorMemory({"spans": state.spans.runs, "keys": state.key_ids.runs}, state.key_ids.counters)

    def step(self, state: DedupState, rows: pa.Table, watermark: int) -> Step:
        """Pass on what is new, and forget what can decide nothing more."""
        rows, at, late = split_late(rows.combine_chunks(), self.event_time, watermark - self._width())
        groups = hashed_groups(rows, self.on)
        key_ids = state.key_ids.numbers(groups.keys)
        new = _new(state.spans, groups.of, key_ids, at)
        out = rows if len(new) == len(rows) else rows.take(pa.array(new))
        state.spans.add(key_ids[groups.of[new]], at[new])
        state.drop(max(watermark - 2 * self._width() + 1, NEVER))
        return Step(out, late, len(rows) - len(out))

    def next_timer(self, state: DedupState) -> int | None:
        """Return the clock from which on the oldest span of time is forgotten."""
        end = state.spans.end()
        return None if end is None else end - 1 + 2 * self._width()

    def _width(self) -> int:
        return self.within // MICROSECOND


def _new(spans: Spans, of: Numbers, key_ids: Numbers, at: Times) -> Numbers:
    """Return the places of the rows to pass on.

    Rows of a key in one span are near each other, so of each such cell the first that is not near a
    remembered time is passed on. Only where a key has such rows in two spans side by side do they
    have to be walked in their order.
    """
    span = at // spans.width
    cell = pairs(of, number(pa.array(span)))
    first = firsts(cell)
    least, most = spans.free(key_ids[of[first]], span[first])
    free = np.flatnonzero((at >= least[cell]) & (at <= most[cell]))
    opening = np.full(len(first), len(at))
    opening[cell[free][::-1]] = free[::-1]  # of several, the last is assigned: the first free row
    opened = opening < len(at)
    tangled = opened & _beside(of[first], span[first], opened)
    walked = free[tangled[cell[free]]]
    apart = _walk(walked, of[walked], at[walked], spans.width)
    return np.sort(np.concatenate([opening[opened & ~tangled], apart]))


def _beside(of: Numbers, span: Numbers, opened: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Tell which of the opened cells have another one of their group before or after them."""
    beside = np.zeros(len(of), np.bool_)
    some = np.flatnonzero(opened)
    if not len(some) or span[some].min() == span[some].max():
        return beside
    some = some[np.lexsort((span[some], of[some]))]
    near = (np.diff(of[some]) == 0) & (np.diff(span[some]) == 1)
    beside[some[1:][near]] = True
    beside[some[:-1][near]] = True
    return beside


def _walk(indices: Numbers, of: Numbers, at: Times, width: int) -> Numbers:
    """Return those of some rows that are to be passed on, taking one after the other."""
    passed: dict[tuple[int, int], int] = {}
    new = []
    for index, key, time in zip(indices.tolist(), of.tolist(), at.tolist(), strict=True):
        span = time // width
        before, after = passed.get((key, span - 1)), passed.get((key, span + 1))
        if (key, span) in passed or (before is not None and time - before < width):
            continue
        if after is None or after - time >= width:
            passed[key, span] = time
            new.append(index)
    return np.array(new, np.int64)
