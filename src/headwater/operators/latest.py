"""The newest row of each key, by event time.

Invariant: the row that is kept for a key is the greatest, by event time and then by all columns, of
those that have come, so the result does not depend on the order of arrival. Taking a row again
changes nothing, which is why restoring a chunk is the same as taking its rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.operators.columns import check_columns, check_time
from headwater.operators.event_time import Times, split_late, times
from headwater.operators.groups import Groups, Numbers, group
from headwater.operators.memory.numbered_rows import NOWHERE
from headwater.operators.memory.row_by_key import RowByKey
from headwater.operators.operator import NEVER, Operator, Step
from headwater.operators.order import order


@dataclass(frozen=True)
class Latest(Operator[RowByKey]):
    """Pass on each row that becomes the newest of its key.

    Of rows with equal times the greatest by all columns is the newest. A step emits at most one row
    of a key, in the order in which the keys first appear in it; older rows are used silently.
    Nothing is late, except a row without an event time. The state is the newest row of each key and
    stays; a restart finds it as it was.

    >>> from headwater.operators.operator import NEVER
    >>> when = pa.array([2, 1, 1], pa.timestamp("us", "UTC"))
    >>> rows = pa.table({"customer": ["ada", "ada", "bob"], "city": ["Paris", "Rome", "Oslo"], "at": when})
    >>> latest = Latest(by=("customer",), event_time="at")
    >>> latest.step(latest.initial_state(rows.schema), rows, watermark=NEVER).out["city"].to_pylist()
    ['Paris', 'Oslo']
    """

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

    def restore_chunk(self, state: RowByKey, chunk: pa.Table) -> None:
        """Take the rows of a chunk."""
        self.step(state, chunk, NEVER)

    def step(self, state: RowByKey, rows: pa.Table, watermark: int) -> Step:
        """Keep the rows that are newer than those of their keys, and emit them."""
        rows, at, late = split_late(rows.combine_chunks(), self.event_time, NEVER)
        groups = group(rows, self.by)
        chosen = _newest(rows, at, groups)
        rows = rows.take(pa.array(chosen))
        slots = state.find(groups.keys)
        newer = self._newer(state, rows, at[chosen], slots)
        out = rows if newer.all() else rows.filter(pa.array(newer))
        if not len(out):
            return Step(out, late)
        state.put(groups.keys[newer], slots[newer], out)
        return Step(out, late, chunk=out)

    def next_timer(self, state: RowByKey) -> int | None:
        """Return None: time alone changes nothing."""
        return None

    def snapshot(self, state: RowByKey) -> pa.Table:
        """Return the newest row of each key."""
        return state.rows()

    def _newer(self, state: RowByKey, rows: pa.Table, at: Times, slots: Numbers) -> npt.NDArray[np.bool_]:
        """Tell which rows are greater than those in the slots of their keys."""
        newer: npt.NDArray[np.bool_] = slots == NOWHERE
        known = np.flatnonzero(~newer)
        old = times(state.take(slots[known], self.event_time), self.event_time)
        newer[known] = at[known] > old
        same = known[at[known] == old]
        newer[same] = _greater(rows.take(pa.array(same)), state.take(slots[same]))
        return newer


def _newest(rows: pa.Table, at: Times, groups: Groups) -> Numbers:
    """Return the place of the greatest row of each group."""
    newest = np.full(len(groups.keys), NEVER)
    np.maximum.at(newest, groups.of, at)
    places = np.flatnonzero(at == newest[groups.of])
    if len(places) > len(newest):
        places = places[order(rows.take(pa.array(places)), groups.of[places])]
    chosen = np.empty(len(newest), np.int64)
    chosen[groups.of[places]] = places  # of several, the last is assigned: the greatest
    return chosen


def _greater(rows: pa.Table, others: pa.Table) -> npt.NDArray[np.bool_]:
    """Tell of each row whether it is greater than the other one at its place."""
    pair = np.arange(len(rows))
    # An equal row comes first, as it stands first: then the other is last and nothing is greater.
    places = order(pa.concat_tables([rows, others]).combine_chunks(), np.concatenate([pair, pair]))
    greater: npt.NDArray[np.bool_] = places[1::2] < len(rows)
    return greater
