"""What has happened in the time up to each event: a window that ends with it.

An event waits until the clock has passed it: then no earlier one can come. Events of a key at one time
are one partial result, and make one result.

Invariant: every event that the clock has passed is published with the events of its key that are not
more than a window's length before it, as they are known now; one that waits, as ``every`` asks for it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta

import numpy as np
import pyarrow as pa

from headwater.durations import MICROSECOND
from headwater.operators.event_time import FOREVER, NEVER, Times, times
from headwater.operators.groups import Flags, Numbers, firsts, number, pairs
from headwater.operators.late_rows import Split
from headwater.operators.memory.entries import Entries, arranged, spans
from headwater.operators.memory.key_ids import KeyIds
from headwater.operators.memory.operator_memory import OperatorMemory
from headwater.operators.memory.publications import PublicationCounts
from headwater.operators.memory.rows_in_time import RowsInTime
from headwater.operators.memory.slots import by_major, slots_of_numbers
from headwater.operators.memory.sorted_runs import SortedRuns
from headwater.operators.operator import Step
from headwater.operators.windows.publishing import Publishable, counts, crowded, publish
from headwater.operators.windows.ranges import over
from headwater.operators.windows.window_memory import window_memory
from headwater.operators.windows.windowing import END, Windowed, Windowing, bounded, grouped, timed

_EVENT = pa.schema([("key_id", pa.int64()), ("at", pa.int64())])


class SlidingEvents:
    """Partial results by key and time, those of them that wait, and how often windows were published."""

    def __init__(self, held: SortedRuns, publications: PublicationCounts):
        self.key_ids = KeyIds()
        self.watermark = NEVER
        self.held = held
        self.publications = publications
        self.waiting, self.fading = RowsInTime(_EVENT), RowsInTime(_EVENT)
        self.spent = 0

    def add(self, fresh: Entries) -> None:
        """Add partial results of events."""
        self.held.add(fresh)
        events = pa.Table.from_arrays([pa.array(fresh.major), pa.array(fresh.minor)], schema=_EVENT)
        new = np.flatnonzero(fresh.minor >= self.watermark)
        slots = slots_of_numbers(fresh.major)
        self.waiting.add(events.take(pa.array(new)), fresh.minor[new], slots[new])
        self.fading.add(events, fresh.minor, slots)

    def due(self, watermark: int) -> tuple[Numbers, Times]:
        """Return the keys and times of events that the clock has passed since the last step."""
        events = self.waiting.until(watermark)
        return events["key_id"].to_numpy(), events["at"].to_numpy()

    def drop(self, before: int, watermark: int) -> None:
        """Forget the events up to a time, and that those before the clock wait."""
        self.waiting.drop(watermark)
        self.spent += self.fading.drop(bounded(before + 1))
        self.publications.drop(before)
        if 2 * self.spent > len(self.held):
            self.held.retain(before)
            self.spent = 0
        if self.key_ids.crowded:
            self.key_ids.keep(np.unique(self.held.majors()))

    def next_timer(self, margin: int) -> int | None:
        """Return the clock that has just passed an event, or at which one is forgotten, a margin after it."""
        first, last = self.waiting.first(), self.fading.first()
        found = [] if first is None else [first + 1]
        return min([*found, *([] if last is None else [last + margin])], default=None)


@dataclass(frozen=True)
class Sliding(Windowed[SlidingEvents]):
    """Aggregate, at each event, the events of its key that are less than ``size`` before it, and itself.

    There is one result for each key and time at which it has events, once the clock is after it. An
    event from before the clock is late, or from longer before than late rows are to correct results;
    and one without a time. A late event that is used publishes all results again that it is in. Rows
    come out in the order of time, then of their keys. With ``every``, an event that waits is published
    too, whenever so many more rows have come to its window. The state is a partial result for each key and
    time, for as long as a window may reach back to it; a restart finds it as it was.
    """

    windowing: Windowing
    size: timedelta
    every: int | None = None
    """After how many more rows of its window an event that waits is published."""
    key: tuple[str, ...] = field(init=False)

    @property
    def event_time_out(self) -> str:
        """The column out that is the event time of results: that of the event."""
        return END

    def output_schema(self, schema: pa.Schema) -> pa.Schema:
        """Return the key, the window, the aggregates, and what is told of the result."""
        return self.windowing.output_schema(schema)

    def initial_state(self, schema: pa.Schema) -> SlidingEvents:
        """Return a state without events."""
        partials = self._held.state_schema(schema)
        again = self.windowing.corrects or self.every is not None
        held = SortedRuns(partials.empty_table(), self._held.merge, slots=by_major)
        return SlidingEvents(held, PublicationCounts(again))

    def memory(self, state: SlidingEvents) -> OperatorMemory:
        """Return events, those that wait or will be forgotten, publications and the numbers of keys."""
        in_time = {"waiting": state.waiting, "fading": state.fading}
        containers = {"events": state.held, "published": state.publications.runs}
        return window_memory(
            state,
            {**containers, **{name: each.runs for name, each in in_time.items()}},
            {"spent": (state, "spent"), **{name: (each, "added") for name, each in in_time.items()}},
        )

    def step(self, state: SlidingEvents, rows: pa.Table, watermark: int) -> Step:
        """Let new events wait, and publish those that the clock has passed or that have changed."""
        rows, at, late = self._split_late(rows.combine_chunks(), watermark)
        fresh = self._fresh(state, rows, at)
        state.add(fresh)
        found = [
            Publishable(self._passed(state, fresh, watermark), complete=True),
            *self._early(state, fresh, watermark),
        ]
        out = publish(
            self.windowing, state.publications, found, self._size(), self.output_schema(rows.schema)
        )
        state.watermark = max(state.watermark, watermark)
        state.drop(self._forgotten(watermark), watermark)
        return Step(out, late)

    def next_timer(self, state: SlidingEvents) -> int | None:
        """Return when the next event may be published, or forgotten."""
        return state.next_timer(self._size() + self.windowing.keep // MICROSECOND)

    def output_watermark(self, watermark: int) -> int:
        """Return the time of the first event that may still be published."""
        return self.windowing.correction_horizon(watermark)

    @property
    def _held(self) -> Windowing:
        """What partial results are of: the aggregates, and the number of rows where that decides."""
        return self.windowing if self.every is None else self.windowing.counting

    def _size(self) -> int:
        return self.size // MICROSECOND

    def _forgotten(self, watermark: int) -> int:
        """Return the time up to which events are in no window any more that may be published."""
        horizon = self.windowing.correction_horizon(watermark)
        return horizon if horizon == NEVER else bounded(horizon - self._size())

    def _split_late(self, rows: pa.Table, watermark: int) -> Split:
        at = times(rows, self.windowing.event_time)
        return self.windowing.split_late(rows, at, self._is_late(at, watermark), at - self._size(), watermark)

    def _is_late(self, at: Times, watermark: int) -> Flags:
        """Tell which events have no time, or one whose result is settled."""
        late: Flags = ~timed(at) | (at < self.windowing.correction_horizon(watermark))
        return late

    def _fresh(self, state: SlidingEvents, rows: pa.Table, at: Times) -> Entries:
        """Return the partial result of each key and time of new rows."""
        groups = grouped(rows, self.windowing.by)
        cells = pairs(groups.of, number(pa.array(at)))
        first = firsts(cells)
        made = self._held.partials(rows, at, cells, first)
        return Entries(state.key_ids.numbers(groups.keys)[groups.of[first]], at[first], made)

    def _passed(self, state: SlidingEvents, fresh: Entries, watermark: int) -> Entries:
        """Return the windows of events that the clock has just passed, or that have changed."""
        again = fresh.take(np.flatnonzero(fresh.minor < state.watermark))
        due = state.due(watermark)
        key_ids, since = _earliest(np.append(due[0], again.major), np.append(due[1], again.minor))
        reach, end = since - self._size() + 1, np.full(len(key_ids), watermark)
        events = state.held.within(key_ids, reach, end)
        places = np.flatnonzero((events.minor >= state.watermark) | self._changed(events, again))
        return self._windows(events, places)

    def _early(self, state: SlidingEvents, fresh: Entries, watermark: int) -> list[Publishable]:
        """Return the windows of events that wait, whose number of rows has passed a multiple."""
        if self.every is None or not len(fresh):
            return []
        key_ids, since = _earliest(fresh.major, fresh.minor)
        events = state.held.within(key_ids, since - self._size() + 1, np.full(len(key_ids), FOREVER))
        new = np.where(events.minor >= watermark, self._new(events, fresh), 0)
        places = np.flatnonzero(new)
        windows = self._windows(events, places)
        passed = crowded(windows.rows, new[places], self.every)
        return [Publishable(windows.take(np.flatnonzero(passed)), complete=False)]

    def _new(self, events: Entries, fresh: Entries) -> Numbers:
        """Return how many new rows there are in the windows of events."""
        places = arranged(fresh.major, fresh.minor)
        known = Entries(fresh.major[places], fresh.minor[places], fresh.rows)
        start, end = spans(known, events.major, events.minor - self._size() + 1, events.minor + 1)
        sums = np.append(0, np.cumsum(counts(fresh.rows)[places]))
        new: Numbers = sums[end] - sums[start]
        return new

    def _windows(self, events: Entries, indices: Numbers) -> Entries:
        """Merge the windows of events at some places, of those that are sorted by key and time."""
        keys, at = events.major[indices], events.minor[indices]
        start, end = spans(events, keys, at - self._size() + 1, at + 1)
        return Entries(at - self._size(), keys, over(events, start, end, self._held.merge))

    def _changed(self, events: Entries, new: Entries) -> Flags:
        """Tell which events, sorted by key and time, have a new one in their window."""
        places = arranged(new.major, new.minor)
        known = Entries(new.major[places], new.minor[places], new.rows)
        start, end = spans(known, events.major, events.minor - self._size() + 1, events.minor + 1)
        changed: Flags = start < end
        return changed


def _earliest(key_ids: Numbers, at: Times) -> tuple[Numbers, Times]:
    """Return each key once, with the earliest of its times."""
    places = arranged(key_ids, at)
    first = places[np.diff(key_ids[places], prepend=-1) != 0]
    return key_ids[first], at[first]
