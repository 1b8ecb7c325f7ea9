"""Two streams joined where keys are equal and times are near each other.

A row waits as long as a row of the other side that it could match may still come. Whichever comes
second finds the first. What the clock has passed without a match comes out alone, if that is wanted.

A row that is not late is not before the clock. So it cannot match a left row from before the clock less
``after``, nor a right row from before the clock less ``before``: such rows decide nothing more.

Invariant: each pair comes out once, in the step in which its second row comes; each row without a match
once, in the first step after which it can have none.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.durations import MICROSECOND
from headwater.operators.columns import check_time
from headwater.operators.event_time import NEVER, Times, behind, moved
from headwater.operators.groups import Flags, Numbers
from headwater.operators.joined import Joined
from headwater.operators.joins.arrivals import Arrivals, Arrived, arrivals, times_of
from headwater.operators.joins.waiting_rows import WaitingRows
from headwater.operators.memory.operator_memory import OperatorMemory
from headwater.operators.operator import Operator, Step
from headwater.operators.pairing import Pairing, sides

HOW = ("inner", "left", "right", "full", "semi", "anti")
_LEFT_ALONE, _RIGHT_ALONE = ("left", "full", "anti"), ("right", "full")


@dataclass(frozen=True)
class IntervalJoinState:
    """The rows of both sides that wait, and how rows of both come out; nothing where only left ones do."""

    left: WaitingRows
    right: WaitingRows
    joined: Joined | None


@dataclass(frozen=True)
class Within(Operator[IntervalJoinState]):
    """Join a left row at ``t`` with the right rows of its key from ``t - before`` to ``t + after``.

    A pair comes out when its second row comes; a row without a match, where ``how`` asks for it, when
    the clock has passed the last time of a match. In a step pairs come first: of the new left rows, then
    of the new right ones, in the order of arrival; then left rows alone, then right ones. A row from
    before the clock is late, and so is one without an event time. The state is the rows of both sides
    until no match can come; a restart finds them, and which of them have had a match, as they were.

    >>> from headwater.operators.event_time import NEVER
    >>> from headwater.operators.pairing import pairing
    >>> at = lambda *times: pa.array(times, pa.timestamp("us", "UTC"))
    >>> shown, clicks = pa.table({"url": ["a", "b"], "at": at(1, 2)}), pa.table({"url": ["a"], "at": at(3)})
    >>> on, after = pairing("within", "url"), timedelta(microseconds=5)
    >>> within = Within(on, ("at", "at"), timedelta(), after, how="left", prefix="click_")
    >>> rows = on.sent(shown, clicks, on.schema("within", shown.schema, clicks.schema))
    >>> state = within.initial_state(rows.schema)
    >>> for clock in (NEVER, 8):
    ...     out = within.step(state, rows if clock == NEVER else rows.slice(0, 0), clock).out
    ...     out["url"].to_pylist(), out["click_at"].cast(pa.int64()).to_pylist()
    (['a'], [3])
    (['b'], [None])
    """

    version = 3
    pairing: Pairing
    times: tuple[str, str]
    """The event-time columns of the left and of the right."""
    before: timedelta
    after: timedelta
    how: str = "inner"
    prefix: str | None = None
    key: tuple[str, ...] = field(init=False)

    @property
    def waits(self) -> bool:
        """What has no partner comes out when none can come any more."""
        return self.how not in ("inner", "semi")

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", self.pairing.key)

    def output_schema(self, schema: pa.Schema) -> pa.Schema:
        """Return the left columns, and where both sides come out the right ones without the keys."""
        for side, name in zip(sides(schema), self.times, strict=True):
            check_time("within", name, side)
        joined = self._joined(schema)
        return sides(schema)[0] if joined is None else joined.schema

    def initial_state(self, schema: pa.Schema) -> IntervalJoinState:
        """Return a state without rows."""
        left, right = sides(schema)
        return IntervalJoinState(
            WaitingRows(left, self.how in _LEFT_ALONE, once=self.how == "semi"),
            WaitingRows(right, self.how in _RIGHT_ALONE),
            self._joined(schema),
        )

    def memory(self, state: IntervalJoinState) -> OperatorMemory:
        """Return the rows that wait, and which of them have had a match."""
        both = {"left": state.left, "right": state.right}
        containers = {
            f"{side}_{name}": runs
            for side, waiting in both.items()
            for name, runs in waiting.containers.items()
        }
        return OperatorMemory(containers, {side: (waiting.rows, "added") for side, waiting in both.items()})

    def step(self, state: IntervalJoinState, rows: pa.Table, watermark: int) -> Step:
        """Let new rows meet those that wait, and let go those that the clock has passed."""
        at = times_of(rows, *self.times)
        come = arrivals(rows, at, _is_late(at, watermark), self.pairing)
        ends = self._ends(watermark)
        due = state.left.due(ends[0]), state.right.due(ends[1])
        left, right = self._useful(come)
        if state.joined is None:
            out = [*self._meet_once(state, left, right), due[0]]
        else:
            out = [*self._meet(state, state.joined, left, right), *self._alone(state.joined, *due)]
        state.left.drop(ends[0])
        state.right.drop(ends[1])
        return Step(pa.concat_tables(out), come.late)

    def next_timer(self, state: IntervalJoinState) -> int | None:
        """Return the clock from which on a row can have no match any more, or some can be given back."""
        ends = state.left.next_timer(self._after), state.right.next_timer(self._before)
        return min((end for end in ends if end is not None), default=None)

    def output_watermark(self, watermark: int) -> int:
        """Return how far back a left row may lie that waits; or a right one that may come out alone."""
        wait = max(self._after, self._before) if self.how in _RIGHT_ALONE else self._after
        return behind(watermark, wait)

    @property
    def _before(self) -> int:
        return self.before // MICROSECOND

    @property
    def _after(self) -> int:
        return self.after // MICROSECOND

    def _joined(self, schema: pa.Schema) -> Joined | None:
        if self.how in ("semi", "anti"):
            return None
        left, right = sides(schema)
        return Joined("within", self.pairing, left, right, self.prefix, optional=self.how in _RIGHT_ALONE)

    def _useful(self, come: Arrivals) -> tuple[Arrived, Arrived]:
        """Return the rows that can match, or come out though they cannot."""
        left, right = come.left, come.right
        return (
            left if self.how in _LEFT_ALONE else left.only(left.keyed),
            right if self.how in _RIGHT_ALONE else right.only(right.keyed),
        )

    def _meet(
        self, state: IntervalJoinState, joined: Joined, left: Arrived, right: Arrived
    ) -> list[pa.Table]:
        """Add new rows, and return the pairs of which they are: of new left rows, then of new right ones."""
        known = state.left.rows.find(right.keys, moved(right.at, -self._after), moved(right.at, self._before))
        new_right = state.right.add(right)
        needed = () if joined.optional else tuple(joined.added)
        span = moved(left.at, -self._before), moved(left.at, self._after)
        fresh = state.right.rows.find(left.keys, *span, *needed)
        state.left.note(state.left.add(left), _flags(fresh.query, len(left.at)), known)
        state.right.note(new_right, _flags(known.query, len(right.at)), fresh)
        return [
            joined.rows(left.rows.take(pa.array(fresh.query)), fresh.rows),
            joined.rows(known.rows, right.rows.take(pa.array(known.query))),
        ]

    def _meet_once(self, state: IntervalJoinState, left: Arrived, right: Arrived) -> list[pa.Table]:
        """Add new rows, and return the left rows that have a first match, if those come out.

        Whether there is a match is asked of each left row: the pairs may be many more than the rows.
        """
        known = state.left.meeting(right, self._before, self._after)
        state.right.add(right)
        fresh = state.right.meets(left, self._before, self._after)
        state.left.note(state.left.add(left), fresh, known)
        if self.how == "anti":
            return []
        return [state.left.take(known), left.rows.filter(pa.array(fresh))]

    def _alone(self, joined: Joined, left: pa.Table, right: pa.Table) -> list[pa.Table]:
        """Return rows of one side as rows out."""
        nothing = joined.right.empty_table().take(pa.nulls(len(left), pa.int64()))
        out = [joined.rows(left, nothing)]
        if len(right):
            missing = joined.left.empty_table().take(pa.nulls(len(right), pa.int64()))
            out.append(self._timed(joined.rows(missing, right), right))
        return out

    def _timed(self, rows: pa.Table, right: pa.Table) -> pa.Table:
        """Give right rows that come out alone their time as the event time, so that time goes on."""
        place = rows.column_names.index(self.times[0])
        filled = pc.coalesce(rows.column(place), right[self.times[1]].cast(rows.column(place).type))
        return rows.set_column(place, rows.schema.field(place), filled)

    def _ends(self, watermark: int) -> tuple[int, int]:
        """Return the times before which no left row, and no right one, can have another match."""
        return behind(watermark, self._after), behind(watermark, self._before)


def _is_late(at: Times, watermark: int) -> Flags:
    """Tell which rows are from before the clock, or have no time."""
    late: Flags = (at < watermark) | (at == NEVER)
    return late


def _flags(indices: Numbers, count: int) -> Flags:
    """Tell which of so many rows are among some."""
    flags = np.zeros(count, np.bool_)
    flags[indices] = True
    return flags
