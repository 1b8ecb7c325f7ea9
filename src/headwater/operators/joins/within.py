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
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.durations import MICROSECOND
from headwater.operators.columns import check_time
from headwater.operators.event_time import FOREVER, NEVER, Times, behind, moved, times
from headwater.operators.groups import Flags, Numbers
from headwater.operators.joined import Joined
from headwater.operators.joins.arrivals import Arrivals, Arrived, arrivals, slots_of, times_of
from headwater.operators.memory.chunk_codec import decode, decode_watermark, encode, extra_column
from headwater.operators.memory.numbered_rows import NOWHERE
from headwater.operators.memory.rows_by_key_and_time import KeySlots, RowsByKeyAndTime, tidied
from headwater.operators.memory.runs import Runs
from headwater.operators.operator import Operator, Step
from headwater.operators.pairing import LEFT, RIGHT, Pairing, sides

HOW = ("inner", "left", "right", "full", "semi", "anti")
_LEFT_ALONE, _RIGHT_ALONE = ("left", "full", "anti"), ("right", "full")
_MARKED = "marked"
_MATCHED = 1


@dataclass(frozen=True)
class IntervalJoinState:
    """The rows of both sides that wait, those that have had a match marked, and the numbers of their keys."""

    slots: KeySlots
    left: RowsByKeyAndTime
    right: RowsByKeyAndTime
    types: list[pa.DataType]
    """Of the keys."""
    joined: Joined | None
    """How rows of both come out; nothing where only left ones do."""


class _Rows(NamedTuple):
    """Left and right rows by their numbers: pairs of them, or some of each."""

    left: Numbers
    right: Numbers


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
        types = [schema.field(name).type for name in self.key]
        return IntervalJoinState(
            KeySlots(), RowsByKeyAndTime(left), RowsByKeyAndTime(right), types, self._joined(schema)
        )

    def restore_chunk(self, state: IntervalJoinState, chunk: pa.Table) -> None:
        """Take over rows that wait, mark those that they match, and forget what has come out."""
        self._drop(state, decode_watermark(chunk))
        names = tuple(zip(*self.pairing.on, strict=True))
        new = (
            self._stored(state, decode(chunk, LEFT), names[0], self.times[0]),
            self._stored(state, decode(chunk, RIGHT), names[1], self.times[1]),
        )
        if self.how != "inner":
            # Marks of new rows are told; those that waited are marked again by whoever has come.
            self._mark_met(state, *new)
        numbers = _Rows(state.left.add(*new[0]), state.right.add(*new[1]))
        marks = (extra_column(chunk, side, _MARKED) for side in (LEFT, RIGHT))
        _mark(state, _Rows(*(each[mark] for each, mark in zip(numbers, marks, strict=True))))
        tidied(state.slots, state.left, state.right)

    def step(self, state: IntervalJoinState, rows: pa.Table, watermark: int) -> Step:
        """Let new rows meet those that wait, and let go those that the clock has passed."""
        at = times_of(rows, *self.times)
        come = arrivals(rows, at, _is_late(at, watermark), self.pairing, state.slots)
        due = self._due(state, watermark)
        meet = self._meet if state.joined is not None else self._meet_once
        numbers, pairs = meet(state, *self._useful(come))
        out = pa.concat_tables([self._matched(state, pairs), self._unmatched(state, due)])
        _mark(state, pairs)
        learnt = any(map(len, (*numbers, *due)))
        chunk = self._chunk(state, numbers, watermark) if learnt else None
        self._drop(state, watermark)
        tidied(state.slots, state.left, state.right)
        return Step(out, come.late, chunk=chunk)

    def next_timer(self, state: IntervalJoinState) -> int | None:
        """Return the clock from which on a row can have no match any more."""
        ends = ((state.left.first(), self._after), (state.right.first(), self._before))
        return min((first + wait + 1 for first, wait in ends if first is not None), default=None)

    def output_watermark(self, watermark: int) -> int:
        """Return how far back a left row may lie that waits; or a right one that may come out alone."""
        wait = max(self._after, self._before) if self.how in _RIGHT_ALONE else self._after
        return behind(watermark, wait)

    def snapshot(self, state: IntervalJoinState) -> pa.Table:
        """Return the rows that wait."""
        return self._chunk(state, _Rows(state.left.numbers(), state.right.numbers()), NEVER)

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

    def _stored(self, state: IntervalJoinState, rows: pa.Table, names: tuple[str, ...], time: str) -> Arrived:
        slots = slots_of(rows, names, state.types, state.slots.of)
        return Arrived(rows, times(rows, time), slots)

    def _useful(self, come: Arrivals) -> tuple[Arrived, Arrived]:
        """Return the rows that can match, or come out though they cannot."""
        left, right = come.left, come.right
        return (
            left if self.how in _LEFT_ALONE else left.only(left.slots != NOWHERE),
            right if self.how in _RIGHT_ALONE else right.only(right.slots != NOWHERE),
        )

    def _meet(self, state: IntervalJoinState, left: Arrived, right: Arrived) -> tuple[_Rows, _Rows]:
        """Add new rows; return their numbers, and the pairs of which they are."""
        known = state.left.find(right.slots, moved(right.at, -self._after), moved(right.at, self._before))
        new = _Rows(state.left.add(*left), state.right.add(*right))
        fresh = state.right.find(left.slots, *self._matching(left.at))
        pairs = _Rows(
            np.concatenate([new.left[fresh.query], known.number]),
            np.concatenate([fresh.number, new.right[known.query]]),
        )
        return new, pairs

    def _meet_once(self, state: IntervalJoinState, left: Arrived, right: Arrived) -> tuple[_Rows, _Rows]:
        """Add new rows; return their numbers, and the left rows that have a first match.

        Whether there is a match is asked of each left row: the pairs may be many more than the rows.
        """
        known = _met(state.left, self.times[0], right, (self._before, self._after))
        new = _Rows(state.left.add(*left), state.right.add(*right))
        fresh = state.right.any(left.slots, *self._matching(left.at))
        return new, _Rows(np.concatenate([known, new.left[fresh]]), np.empty(0, np.int64))

    def _mark_met(self, state: IntervalJoinState, left: Arrived, right: Arrived) -> None:
        """Mark the rows that wait and match new ones."""
        state.left.note(_met(state.left, self.times[0], right, (self._before, self._after)), _MATCHED)
        if self.how in _RIGHT_ALONE:
            state.right.note(_met(state.right, self.times[1], left, (self._after, self._before)), _MATCHED)

    def _matching(self, at: Times) -> tuple[Times, Times]:
        """Return from when to when right rows match left ones."""
        return moved(at, -self._before), moved(at, self._after)

    def _due(self, state: IntervalJoinState, watermark: int) -> _Rows:
        """Return the rows that can have no match any more and had none, of the sides that come out alone."""
        none = np.empty(0, np.int64)
        left, right = self._ends(watermark)
        return _Rows(
            _unmarked(state.left, state.left.until(left)) if self.how in _LEFT_ALONE else none,
            _unmarked(state.right, state.right.until(right)) if self.how in _RIGHT_ALONE else none,
        )

    def _matched(self, state: IntervalJoinState, pairs: _Rows) -> pa.Table:
        """Return pairs as rows out, or left rows that have their first match."""
        if state.joined is not None:
            return _side_by_side(state, state.joined, pairs)
        first = np.unique(pairs.left) if self.how == "semi" else pairs.left[:0]
        return state.left.take(_unmarked(state.left, first))

    def _unmatched(self, state: IntervalJoinState, due: _Rows) -> pa.Table:
        """Return rows of one side as rows out."""
        if state.joined is None:
            return state.left.take(due.left)
        missing = [np.full(len(numbers), NOWHERE) for numbers in due]
        both = _Rows(np.append(due.left, missing[1]), np.append(missing[0], due.right))
        rows = _side_by_side(state, state.joined, both)
        return self._timed(rows, state.right.take(both.right, self.times[1])) if len(due.right) else rows

    def _timed(self, rows: pa.Table, right: pa.Table) -> pa.Table:
        """Give right rows that come out alone their time as the event time, so that time goes on."""
        place = rows.column_names.index(self.times[0])
        filled = pc.coalesce(rows.column(place), right.column(0).cast(rows.column(place).type))
        return rows.set_column(place, rows.schema.field(place), filled)

    def _ends(self, watermark: int) -> tuple[int, int]:
        """Return the times before which no left row, and no right one, can have another match."""
        return behind(watermark, self._after), behind(watermark, self._before)

    def _drop(self, state: IntervalJoinState, watermark: int) -> None:
        for waiting, end in zip((state.left, state.right), self._ends(watermark), strict=True):
            waiting.drop(end)

    def _chunk(self, state: IntervalJoinState, numbers: _Rows, watermark: int) -> pa.Table:
        """Return rows with their marks; left ones that have done all they can are left out."""
        if state.joined is None:
            numbers = numbers._replace(left=_unmarked(state.left, numbers.left))
        tables = {LEFT: state.left.take(numbers.left), RIGHT: state.right.take(numbers.right)}
        marks = np.append(state.left.notes(numbers.left), state.right.notes(numbers.right)) == _MATCHED
        return encode(tables, watermark, {_MARKED: marks})


def _is_late(at: Times, watermark: int) -> Flags:
    """Tell which rows are from before the clock, or have no time."""
    late: Flags = (at < watermark) | (at == NEVER)
    return late


def _mark(state: IntervalJoinState, rows: _Rows) -> None:
    state.left.note(rows.left, _MATCHED)
    state.right.note(rows.right, _MATCHED)


def _met(waiting: RowsByKeyAndTime, time: str, new: Arrived, span: tuple[int, int]) -> Numbers:
    """Return the rows without a mark that match a new one: from so long before them to so long after them."""
    back, ahead = span
    known = new.only(new.slots != NOWHERE)
    slots, of = np.unique(known.slots, return_inverse=True)
    first, last = np.full(len(slots), FOREVER), np.full(len(slots), NEVER)
    np.minimum.at(first, of, known.at)
    np.maximum.at(last, of, known.at)
    query, number = waiting.find(slots, moved(first, -ahead), moved(last, back))
    free = waiting.notes(number) != _MATCHED
    query, number = query[free], number[free]
    at, runs = times(waiting.take(number, time), time), Runs()
    runs.add(known.slots, known.at, np.arange(len(known.at)))
    met: Numbers = number[runs.any(slots[query], moved(at, -back), moved(at, ahead))]
    return met


def _unmarked(waiting: RowsByKeyAndTime, numbers: Numbers) -> Numbers:
    unmarked: Numbers = numbers[waiting.notes(numbers) != _MATCHED]
    return unmarked


def _side_by_side(state: IntervalJoinState, joined: Joined, pairs: _Rows) -> pa.Table:
    needed = () if joined.optional else joined.added
    return joined.rows(state.left.take(pairs.left), state.right.take(pairs.right, *needed))
