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
from headwater.operators.columns import check_columns, check_time, unused_name
from headwater.operators.event_time import NEVER, Times, behind, moved, times
from headwater.operators.groups import Flags, Numbers
from headwater.operators.joined import Joined
from headwater.operators.joins.arrivals import Arrived, arrivals, is_left, times_of
from headwater.operators.joins.deletions import deletions
from headwater.operators.memory.key_hash import KeyHashes
from headwater.operators.memory.operator_memory import OperatorMemory
from headwater.operators.memory.publications import PublicationCounts
from headwater.operators.memory.rows_by_key_and_time import KeyedRows, RowsByKeyAndTime
from headwater.operators.memory.rows_in_time import RowsInTime
from headwater.operators.memory.slots import slots_of_hashes
from headwater.operators.memory.versions import NOWHERE, RowVersions, ValidVersions
from headwater.operators.operator import Operator, Step
from headwater.operators.order import order
from headwater.operators.pairing import Pairing, sides
from headwater.record import DELETED

VERSION, REVISION = "version_at", "revision"


class AsOfState:
    """The versions of a table, the events that wait for them, and those that may have to be corrected."""

    def __init__(self, joined: Joined, left: pa.Schema, right: pa.Schema):
        self.joined = joined
        self.versions = RowVersions(right)
        hashes = [pa.field(unused_name(name, left.names), pa.int64()) for name in ("_high", "_low")]
        self._left, self._waiting = left, pa.schema([*left, *hashes])
        self.waiting = RowsInTime(self._waiting)
        self.done = RowsByKeyAndTime(left)
        """Events that have come out, by the time they asked for."""
        self.corrections = PublicationCounts(counting=True)
        """How often events that have come out were corrected, by that time and their number."""

    def wait(self, new: Arrived) -> None:
        """Let events wait, with their keys."""
        columns = [*new.rows.columns, *map(pa.array, new.keys)]
        slots = slots_of_hashes(new.keys.high)
        self.waiting.add(pa.Table.from_arrays(columns, schema=self._waiting), new.at, slots)

    def drop(self, floor: int) -> None:
        """Forget what no event asks for any more, once those that the clock has passed have asked."""
        self.versions.floor = floor
        self.done.drop(floor)
        self.corrections.drop(floor)

    def ripe(self, watermark: int) -> tuple[pa.Table, KeyHashes]:
        """Return the events from before the clock, and their keys; they wait no longer."""
        found = self.waiting.until(watermark)
        self.waiting.drop(watermark)
        keys = KeyHashes(*(found.column(place).to_numpy() for place in (-2, -1)))
        return found.select(self._left.names), keys


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

    version = 3
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
        return AsOfState(self._joined(schema), *sides(schema))

    def memory(self, state: AsOfState) -> OperatorMemory:
        """Return versions, the events that wait, and those that may be corrected, if any."""
        containers = {"versions": state.versions.held.runs, "waiting": state.waiting.runs}
        numbers = {"versions": (state.versions.held, "added"), "waiting": (state.waiting, "added")}
        if self.correct:
            containers |= {"done": state.done.runs, "corrections": state.corrections.runs}
            numbers |= {"done": (state.done, "added")}
        return OperatorMemory(containers, numbers)

    def step(self, state: AsOfState, rows: pa.Table, watermark: int) -> Step:
        """Take new versions, and join the events that the clock has passed."""
        at = times_of(rows, *self.times)
        come = arrivals(rows, at, self._is_late(rows, at, watermark), self.pairing)
        out = [*self._learn(state, come.right.only(come.right.keyed)), self._ripe(state, watermark)]
        state.wait(come.left)
        state.drop(self._floor(watermark))
        return Step(pa.concat_tables(out), come.late)

    def next_timer(self, state: AsOfState) -> int | None:
        """Return the clock that has just passed the first event that waits, or that some need not be kept."""
        first, done = state.waiting.first(), state.done.fading()
        ends = [None if first is None else first + 1, None if done is None else done + self._back + 1]
        return min((end for end in ends if end is not None), default=None)

    def output_watermark(self, watermark: int) -> int:
        """Return how far back corrections go, if there are any."""
        return behind(watermark, self._back) if self.correct else watermark

    @property
    def _back(self) -> int:
        return 0 if self.keep is None else self.keep // MICROSECOND

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

    def _ripe(self, state: AsOfState, watermark: int) -> pa.Table:
        """Join the events that the clock has passed, in the order of their time."""
        events, keys = state.ripe(watermark)
        places = order(events, times(events, self.times[0]))
        events, keys = events.take(pa.array(places)), keys.take(places)
        asked = self._asked(events)
        if self.correct:
            state.done.add(events, asked, keys)
        return self._out(state, events, state.versions.valid(keys, asked), np.zeros(len(events), np.int64))

    def _learn(self, state: AsOfState, new: Arrived) -> list[pa.Table]:
        """Take new versions, and return the events that come out again with another one."""
        if not len(state.done):
            state.versions.add(*new, deletions(new.rows))
            return []
        touched = self._touched(state, new)
        before = state.versions.valid(touched.keys, touched.at)
        state.versions.add(*new, deletions(new.rows))
        after = state.versions.valid(touched.keys, touched.at)
        changed = np.flatnonzero(before.numbers != after.numbers)
        events = touched.take(changed)
        revisions = state.corrections.of(events.at, events.numbers) + 1
        state.corrections.publish(events.at, events.numbers)
        return [self._out(state, events.rows, after.take(changed), revisions)]

    def _touched(self, state: AsOfState, new: Arrived) -> KeyedRows:
        """Return the events that have come out and ask for a time from a version's to the next one's.

        Each once, in the order in which they came out.
        """
        found = state.done.find(new.keys, new.at, state.versions.next(new.keys, new.at) - 1)
        return found.take(np.unique(found.numbers, return_index=True)[1])

    def _asked(self, events: pa.Table) -> Times:
        """Return the time for which each event asks: not one after it, for which it would have to wait."""
        at = times(events, self.times[0])
        return at if self.at is None else np.minimum(at, times(events, self.at))

    def _out(
        self, state: AsOfState, events: pa.Table, versions: ValidVersions, revisions: Numbers
    ) -> pa.Table:
        if self.how == "inner":
            there = np.flatnonzero(versions.numbers != NOWHERE)
            events, versions, revisions = events.take(pa.array(there)), versions.take(there), revisions[there]
        right = versions.rows
        right = right.append_column(VERSION, right.column(right.column_names.index(self.times[1])))
        rows = state.joined.rows(events, right)
        return rows.append_column(REVISION, pa.array(revisions)) if self.correct else rows
