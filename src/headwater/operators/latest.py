"""The newest row of each key, by event time.

Invariant: the row that is kept for a key is the greatest, by event time and then by all columns, of
those that have come, so the result does not depend on the order of arrival.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from headwater.operators.columns import check_columns, check_time
from headwater.operators.event_time import NEVER, Times, times
from headwater.operators.groups import Flags, Numbers
from headwater.operators.late_rows import split_late
from headwater.operators.memory.key_hash import HashedGroups, hashed_groups
from headwater.operators.memory.operator_memory import OperatorMemory
from headwater.operators.memory.row_by_key import RowByKey
from headwater.operators.operator import Operator, Step
from headwater.operators.order import order


@dataclass(frozen=True)
class Latest(Operator[RowByKey]):
    """Pass on each row that becomes the newest of its key.

    Of rows with equal times the greatest by all columns is the newest. A step emits at most one row
    of a key, in the order in which the keys first appear in it; older rows are used silently.
    Nothing is late, except a row without an event time. The state is the newest row of each key and
    stays; a restart finds it as it was.

    >>> from headwater.operators.event_time import NEVER
    >>> when = pa.array([2, 1, 1], pa.timestamp("us", "UTC"))
    >>> rows = pa.table({"customer": ["ada", "ada", "bob"], "city": ["Paris", "Rome", "Oslo"], "at": when})
    >>> latest = Latest(by=("customer",), event_time="at")
    >>> latest.step(latest.initial_state(rows.schema), rows, watermark=NEVER).out["city"].to_pylist()
    ['Paris', 'Oslo']
    """

    version = 2
    by: tuple[str, ...]
    event_time: str
    key: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", self.by)

    @property
    def identity(self) -> tuple[str, ...]:
        """The key."""
        return self.by

    def output_schema(self, schema: pa.Schema) -> pa.Schema:
        """Return the schema of the rows as they came."""
        check_columns("latest", self.by, schema)
        check_time("latest", self.event_time, schema)
        return schema

    def initial_state(self, schema: pa.Schema) -> RowByKey:
        """Return a state without keys."""
        return RowByKey(schema)

    def memory(self, state: RowByKey) -> OperatorMemory:
        """Return the newest rows."""
        return OperatorMemory({"rows": state.runs})

    def step(self, state: RowByKey, rows: pa.Table, watermark: int) -> Step:
        """Keep the rows that are newer than those of their keys, and emit them."""
        rows, at, late = split_late(rows.combine_chunks(), self.event_time, NEVER)
        groups = hashed_groups(rows, self.by)
        chosen = _newest(rows, at, groups)
        rows = rows.take(pa.array(chosen))
        newer = self._newer(state, rows, at[chosen], groups)
        out = rows if newer.all() else rows.filter(pa.array(newer))
        state.put(groups.keys.take(newer), out)
        return Step(out, late)

    def next_timer(self, state: RowByKey) -> int | None:
        """Return None: time alone changes nothing."""
        return None

    def _newer(self, state: RowByKey, rows: pa.Table, at: Times, groups: HashedGroups) -> Flags:
        """Tell which rows, one of each group, are greater than those that are kept."""
        known, kept = state.find(groups.keys, self.event_time)
        old = times(kept, self.event_time)
        newer: Flags = ~known | (at > old)
        same = np.flatnonzero(known & (at == old))
        if len(same):
            rows, kept = rows.take(pa.array(same)), state.find(groups.keys.take(same)).rows
            newer[same] = _greater(rows, kept.cast(rows.schema))
        return newer


def _newest(rows: pa.Table, at: Times, groups: HashedGroups) -> Numbers:
    """Return the place of the greatest row of each group."""
    newest = np.full(len(groups.first), NEVER)
    np.maximum.at(newest, groups.of, at)
    places = np.flatnonzero(at == newest[groups.of])
    if len(places) > len(newest):
        places = places[order(rows.take(pa.array(places)), groups.of[places])]
    chosen = np.empty(len(newest), np.int64)
    chosen[groups.of[places]] = places  # of several, the last is assigned: the greatest
    return chosen


def _greater(rows: pa.Table, others: pa.Table) -> Flags:
    """Tell of each row whether it is greater than the other one at its place."""
    pair = np.arange(len(rows))
    # An equal row comes first, as it stands first: then the other is last and nothing is greater.
    places = order(pa.concat_tables([rows, others]).combine_chunks(), np.concatenate([pair, pair]))
    greater: Flags = places[1::2] < len(rows)
    return greater
