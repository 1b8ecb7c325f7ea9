"""Events joined with a table as it was when they happened.

An event waits until the clock has passed it. Then every version of the table that was valid at its time
has come, or is late, and the one that is found is found again whenever the events are replayed.

Invariant: an event comes out once, with the version that was valid at its time among those that were in
time; where late versions correct, once more for every step in which that version changes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta

import numpy as np
import pyarrow as pa

from headwater.durations import MICROSECOND
from headwater.errors import UsageError
from headwater.operators.columns import check_columns, check_time
from headwater.operators.event_time import NEVER, Times, behind, moved, times
from headwater.operators.groups import Flags, Numbers
from headwater.operators.joined import Joined
from headwater.operators.joins.arrivals import Arrived, arrivals, is_left, slots_of, times_of
from headwater.operators.joins.deletions import deletions
from headwater.operators.memory.chunk_codec import decode, decode_watermark, encode, extra_column
from headwater.operators.memory.numbered_rows import NOWHERE
from headwater.operators.memory.rows_by_key_and_time import LITTLE, KeySlots, RowsByKeyAndTime, rekeyed
from headwater.operators.memory.timeline import Timeline
from headwater.operators.memory.versions import RowVersions
from headwater.operators.operator import Operator, Step
from headwater.operators.order import order
from headwater.operators.pairing import LEFT, RIGHT, Pairing, sides
from headwater.record import DELETED

VERSION, REVISION = "version_at", "revision"
_DONE = "_done"


@dataclass
class AsOfState:
    """The versions of a table, the events that wait for them, and those that may have to be corrected."""

    joined: Joined
    types: list[pa.DataType]
    """Of the keys."""
    slots: KeySlots
    versions: RowVersions
    waiting: Timeline
    done: RowsByKeyAndTime
    """Events that have come out, by the time they asked for; how often each was corrected is noted."""
    watermark: int = NEVER


@dataclass(frozen=True)
class AsOf(Operator[AsOfState]):
    """Join an event with the row of its key that was valid at its time.

    Events come out when the clock has passed them, in the order of their time and then of their columns;
    corrections come before them, in the order in which the events came out. A row from before the clock
    is late, and so is one without an event time. The state is the events that wait, and the versions that
    an event may still ask for; where late versions correct, also the events of the last ``keep``. A
    restart finds it as it was.

    >>> from headwater.operators.event_time import FOREVER
    >>> from headwater.operators.operator import run
    >>> from headwater.operators.pairing import pairing
    >>> at = lambda *times: pa.array(times, pa.timestamp("us", "UTC"))
    >>> orders = pa.table({"customer": ["ada", "ada"], "at": at(3, 7)})
    >>> tiers = pa.table({"customer": ["ada", "ada"], "tier": ["silver", "gold"], "at": at(1, 5)})
    >>> on = pairing("as_of", "customer")
    >>> rows = on.sent(orders, tiers, on.schema("as_of", orders.schema, tiers.schema))
    >>> run(AsOf(on, ("at", "at")), rows, FOREVER)[-1].out["tier"].to_pylist()
    ['silver', 'gold']
    """

    pairing: Pairing
    times: tuple[str, str]
    """The event-time columns of the left and of the right."""
    at: str | None = None
    """The left column that says for which time the table is asked."""
    how: str = "left"
    keep: timedelta | None = None
    """How far back events may ask, and corrections go."""
    correct: tuple[str, ...] = ()
    """The left columns that tell events apart, if late versions correct what has come out."""
    prefix: str | None = None
    key: tuple[str, ...] = field(init=False)

    @property
    def waits(self) -> bool:
        """A row is joined once the clock is after it."""
        return True

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", self.pairing.key)

    @property
    def identity(self) -> tuple[str, ...]:
        """What tells events apart, where a correction takes the place of what came before."""
        return self.correct

    @property
    def uncompared_columns(self) -> tuple[str, ...]:
        """How often a result was corrected."""
        return (REVISION,) if self.correct else ()

    def output_schema(self, schema: pa.Schema) -> pa.Schema:
        """Return the left columns, the right ones without the keys, and the time of the version."""
        left, right = sides(schema)
        for side, name in ((left, self.times[0]), (right, self.times[1]), (left, self.at or self.times[0])):
            check_time("as_of", name, side)
        joined = self._joined(schema).schema
        if not self.correct:
            return joined
        check_columns("as_of", self.correct, left)
        if REVISION in joined.names:
            raise UsageError(
                f'as_of has two columns "{REVISION}"', hint="give the one that comes in another name"
            )
        return joined.append(pa.field(REVISION, pa.int64()))

    def initial_state(self, schema: pa.Schema) -> AsOfState:
        """Return a state without events and versions."""
        left, right = sides(schema)
        types = [schema.field(name).type for name in self.key]
        return AsOfState(
            self._joined(schema),
            types,
            KeySlots(),
            RowVersions(right),
            Timeline(left),
            RowsByKeyAndTime(left),
        )

    def restore_chunk(self, state: AsOfState, chunk: pa.Table) -> None:
        """Take over rows as the step did, but for what came out."""
        left, right = decode(chunk, LEFT), decode(chunk, RIGHT)
        self._take(state, _timed(left, self.times[0]), _timed(right, self.times[1]), decode_watermark(chunk))
        done = decode(chunk, _DONE)
        state.done.note(self._remember(state, done), extra_column(chunk, _DONE, REVISION))

    def step(self, state: AsOfState, rows: pa.Table, watermark: int) -> Step:
        """Take new versions, and join the events that the clock has passed."""
        at = times_of(rows, *self.times)
        come = arrivals(rows, at, self._is_late(rows, at, watermark), self.pairing, None)
        ripe, out = self._take(state, come.left, come.right, watermark)
        learnt = ripe or len(come.left.at) or len(come.right.at)
        none = state.done.take(np.empty(0, np.int64))
        chunk = self._chunk(come.left.rows, come.right.rows, none, np.empty(0, np.int64), watermark)
        return Step(out, come.late, chunk=chunk if learnt else None)

    def next_timer(self, state: AsOfState) -> int | None:
        """Return the clock that has just passed the first event that waits, or that need not be kept."""
        first, done = state.waiting.first(), state.done.first()
        ends = [None if first is None else first + 1, None if done is None else done + self._back + 1]
        return min((end for end in ends if end is not None), default=None)

    def output_watermark(self, watermark: int) -> int:
        """Return how far back corrections go, if there are any."""
        return behind(watermark, self._back) if self.correct else watermark

    def snapshot(self, state: AsOfState) -> pa.Table:
        """Return the events that wait, those that may be corrected, and the versions in use."""
        versions, numbers = state.versions.since(self._floor(state.watermark)), state.done.numbers()
        events, revisions = state.done.take(numbers), state.done.notes(numbers)
        return self._chunk(state.waiting.rows(), versions, events, revisions, state.watermark)

    @property
    def _back(self) -> int:
        return 0 if self.keep is None else self.keep // MICROSECOND

    @property
    def _names(self) -> tuple[tuple[str, ...], ...]:
        return tuple(zip(*self.pairing.on, strict=True))

    def _floor(self, watermark: int) -> int:
        """Return the earliest time for which the table may still be asked."""
        if self.at is None and not self.correct:
            return watermark
        return NEVER if self.keep is None else behind(watermark, self._back)

    def _joined(self, schema: pa.Schema) -> Joined:
        left, right = sides(schema)
        shown = [each for each in right if each.name not in (DELETED, self.times[1])]
        version = pa.field(VERSION, right.field(self.times[1]).type)
        return Joined("as_of", self.pairing, left, pa.schema([*shown, version]), self.prefix, optional=False)

    def _is_late(self, rows: pa.Table, at: Times, watermark: int) -> Flags:
        """Tell which rows are too late: events that ask too far back among them."""
        mine = is_left(rows)
        bound = np.where(mine, watermark, self._floor(watermark) if self.correct else watermark)
        late: Flags = (at < bound) | (at == NEVER)
        if self.at is not None:
            asked = times_of(rows, self.at, self.times[1])
            oldest = NEVER + 1 if self.keep is None else moved(at, -self._back)
            late |= mine & ((asked == NEVER) | (asked < oldest))
        return late

    def _take(self, state: AsOfState, left: Arrived, right: Arrived, watermark: int) -> tuple[int, pa.Table]:
        """Take new rows; return how many events were waited for, and what comes out."""
        state.watermark = max(state.watermark, watermark)
        corrected = self._learn(state, right)
        events = state.waiting.until(watermark)
        events = events.take(pa.array(order(events, times(events, self.times[0]))))
        out = [
            corrected,
            self._out(state, events, self._versions(state, events), np.zeros(len(events), np.int64)),
        ]
        if self.correct:
            self._remember(state, events)
        state.waiting.drop(watermark)
        state.waiting.add(left.rows, left.at)
        state.done.drop(self._floor(watermark))
        self._tidy(state)
        return len(events), pa.concat_tables(out)

    def _learn(self, state: AsOfState, new: Arrived) -> pa.Table:
        """Take new versions, and return the events that come out again with another one."""
        slots = slots_of(new.rows, self._names[1], state.types, state.slots.of)
        known = slots != NOWHERE
        rows, at, slots = new._replace(slots=slots).only(known)
        touched = self._touched(state, slots, at)
        events = state.done.take(touched)
        before = self._versions(state, events)
        state.versions.add(rows, at, slots, deletions(rows))
        after = self._versions(state, events)
        changed = np.flatnonzero(before != after)
        revisions = state.done.notes(touched[changed]) + 1
        state.done.note(touched[changed], revisions)
        return self._out(state, events.take(pa.array(changed)), after[changed], revisions)

    def _touched(self, state: AsOfState, slots: Numbers, at: Times) -> Numbers:
        """Return the events that have come out and ask for a time from a version's to the next one's."""
        if not len(state.done):
            return np.empty(0, np.int64)
        return np.unique(state.done.find(slots, at, state.versions.next(slots, at) - 1).number)

    def _asked(self, events: pa.Table) -> Times:
        """Return the time for which each event asks: not one after it, for which it would have to wait."""
        at = times(events, self.times[0])
        return at if self.at is None else np.minimum(at, times(events, self.at))

    def _versions(self, state: AsOfState, events: pa.Table) -> Numbers:
        """Return the version of each event; NOWHERE if there is none."""
        slots = slots_of(events, self._names[0], state.types, state.slots.find)
        return state.versions.valid(slots, self._asked(events))

    def _remember(self, state: AsOfState, events: pa.Table) -> Numbers:
        """Keep events that have come out, for they may have to be corrected."""
        slots = slots_of(events, self._names[0], state.types, state.slots.of)
        return state.done.add(events, self._asked(events), slots)

    def _out(self, state: AsOfState, events: pa.Table, versions: Numbers, revisions: Numbers) -> pa.Table:
        if self.how == "inner":
            there = np.flatnonzero(versions != NOWHERE)
            events, versions, revisions = events.take(pa.array(there)), versions[there], revisions[there]
        right = state.versions.take(versions)
        at = right.column_names.index(self.times[1])
        right = right.append_column(VERSION, right.column(at))
        rows = state.joined.rows(events, right)
        return rows.append_column(REVISION, pa.array(revisions)) if self.correct else rows

    def _tidy(self, state: AsOfState) -> None:
        """Give back memory where about half of it is of no use."""
        forgotten = len(state.slots) > 2 * (len(state.versions) + len(state.done)) + LITTLE
        if state.versions.crowded or forgotten:
            state.versions.tidy(self._floor(state.watermark))
        if state.done.crowded or forgotten:
            state.done.tidy()
        if forgotten:
            rekeyed(state.slots, state.versions, state.done)

    def _chunk(
        self, left: pa.Table, right: pa.Table, done: pa.Table, revisions: Numbers, watermark: int
    ) -> pa.Table:
        tables = {LEFT: left, RIGHT: right, _DONE: done}
        noted = np.append(np.zeros(len(left) + len(right), np.int64), revisions)
        return encode(tables, watermark, {REVISION: noted})


def _timed(rows: pa.Table, column: str) -> Arrived:
    return Arrived(rows, times(rows, column), np.full(len(rows), NOWHERE))
