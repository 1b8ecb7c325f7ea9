"""Windows of one length that begin at regular times: hopping ones, and tumbling ones, which do not overlap.

Rows are aggregated by pane, the longest stretch of time that no edge of a window falls into, and panes
are merged to windows when these are published. So an event is looked at once, however many windows
it is in.

Invariant: every window that the clock has passed, and that has an event, is published as it is now.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from math import gcd

import numpy as np
import pyarrow as pa

from headwater.durations import MICROSECOND
from headwater.operators.event_time import FOREVER, NEVER, Times, times
from headwater.operators.groups import Flags, Numbers, firsts, number, pairs
from headwater.operators.late_rows import Split
from headwater.operators.memory.entries import Entries, distinct
from headwater.operators.memory.key_ids import KeyIds
from headwater.operators.memory.operator_memory import OperatorMemory
from headwater.operators.memory.publications import PublicationCounts
from headwater.operators.memory.slots import by_minor
from headwater.operators.memory.sorted_runs import SortedRuns
from headwater.operators.operator import Step
from headwater.operators.windows import comparison
from headwater.operators.windows.grid import Grid
from headwater.operators.windows.publishing import (
    Publishable,
    counts,
    crowded,
    merge_panes,
    publish,
    ready,
)
from headwater.operators.windows.window_memory import window_memory
from headwater.operators.windows.windowing import START, Windowed, Windowing, bounded, grouped, timed

Cells = tuple[Times, Numbers]
"""Panes, with the numbers of keys."""


@dataclass
class Panes:
    """Partial results by pane and key, how often windows were published, and the clock of the last step."""

    key_ids: KeyIds
    panes: SortedRuns
    publications: PublicationCounts
    watermark: int = NEVER

    def drop(self, before: int, back: int = 0) -> None:
        """Forget the windows from before a time, and the panes from so long before it."""
        self.panes.drop(bounded(before - back))
        self.publications.drop(before)
        if self.key_ids.crowded:
            self.key_ids.keep(np.unique(self.panes.minors()))


@dataclass(frozen=True)
class Hopping(Windowed[Panes]):
    """Aggregate the rows of each key in windows of a length that begin every ``hop``.

    A window is published when the clock has come to its end; with ``every``, also whenever the clock
    passes a multiple of that, with the rows from before it, or whenever so many more rows have come to
    the window. A row is late when one of its windows has
    ended, or did so longer ago than late rows are to correct it; and if it has no time. Rows come out
    in the order of their windows, then of their keys. The state is a partial result for each key and
    pane of windows that are open or may be corrected, or that such a one is compared with; a restart
    finds it as it was.
    """

    windowing: Windowing
    size: timedelta
    hop: timedelta
    offset: timedelta = timedelta()
    every: timedelta | int | None = None
    """When open windows are published too: at multiples of a length of time, or of a number of rows."""
    compare: timedelta | None = None
    """How long before a window the one began that it is compared with: a multiple of ``hop``."""
    key: tuple[str, ...] = field(init=False)

    @property
    def event_time_out(self) -> str:
        """The column out that is the event time of results."""
        return START

    @property
    def uncompared_columns(self) -> tuple[str, ...]:
        """How often it was published before, and what is only estimated."""
        rough = () if self.compare is None else comparison.rough(self.windowing)
        return (*super().uncompared_columns, *rough)

    def output_schema(self, schema: pa.Schema) -> pa.Schema:
        """Return the key, the window, the aggregates, how they compare, and what is told of the result."""
        plain = self.windowing.output_schema(schema)
        return plain if self.compare is None else comparison.output_schema(self.windowing, plain)

    def initial_state(self, schema: pa.Schema) -> Panes:
        """Return a state without rows."""
        partials = self._held.state_schema(schema)
        again = self.windowing.corrects or self.every is not None
        panes = SortedRuns(partials.empty_table(), self._held.merge, slots=by_minor)
        return Panes(KeyIds(), panes, PublicationCounts(again))

    def memory(self, state: Panes) -> OperatorMemory:
        """Return partial results, publications and the numbers of keys."""
        return window_memory(state, {"panes": state.panes, "published": state.publications.runs})

    def step(self, state: Panes, rows: pa.Table, watermark: int) -> Step:
        """Add rows to their panes, and publish the windows that have ended or changed."""
        rows, at, late = self._split_late(rows.combine_chunks(), watermark)
        fresh = self._fresh(state, rows, at)
        state.panes.add(fresh)
        found = [
            *self._ended(state, fresh, watermark),
            *self._early(state, fresh, watermark),
            *self._crowded(state, fresh, watermark),
        ]
        plain, beside = self.windowing.output_schema(rows.schema), partial(self._beside, state)
        out = publish(self.windowing, state.publications, found, self._grid.size, plain, beside)
        state.watermark = max(state.watermark, watermark)
        state.drop(self._settled(watermark), self._back)
        return Step(out, late)

    def next_timer(self, state: Panes) -> int | None:
        """Return the next end of a window, or time to publish it before, or to forget a pane."""
        grid, ahead, found = self._grid, self._open(state.watermark), []
        if (oldest := state.panes.next(NEVER)) is not None:
            found += [grid.last(oldest) + grid.size + self.windowing.keep // MICROSECOND + self._back]
        if (pane := state.panes.next(ahead)) is not None:
            found += [max(grid.first(pane), ahead) + grid.size]
        if self._period and (pane := state.panes.next(self._passed(state.watermark))) is not None:
            found += [self._passed(pane) + self._period]
        return min(found, default=None)

    def output_watermark(self, watermark: int) -> int:
        """Return the start of the first window that may still be published."""
        return watermark if watermark == NEVER else self._settled(watermark)

    @property
    def _grid(self) -> Grid:
        size, hop, offset = (each // MICROSECOND for each in (self.size, self.hop, self.offset))
        return Grid(size, hop, gcd(size, hop, self._period), offset)

    @property
    def _period(self) -> int:
        """How often the clock makes open windows be published; 0 for never."""
        return self.every // MICROSECOND if isinstance(self.every, timedelta) else 0

    @property
    def _back(self) -> int:
        """How long before a window the one began that it is compared with; 0 if there is none."""
        return 0 if self.compare is None else self.compare // MICROSECOND

    @property
    def _held(self) -> Windowing:
        """What partial results are of: the aggregates, and the number of rows where that decides."""
        return self.windowing.counting if isinstance(self.every, int) else self.windowing

    def _open(self, watermark: int) -> int:
        """Return the start of the first window that ends after the clock."""
        return bounded(self._grid.open(watermark))

    def _settled(self, watermark: int) -> int:
        """Return the start of the first window that is open, or may be corrected."""
        return self._open(self.windowing.correction_horizon(watermark))

    def _passed(self, watermark: int) -> int:
        """Return the last time to publish early that the clock has passed."""
        if not self._period:
            return NEVER
        offset = self.offset // MICROSECOND
        return bounded((watermark - offset) // self._period * self._period + offset)

    def _split_late(self, rows: pa.Table, watermark: int) -> Split:
        at = times(rows, self.windowing.event_time)
        starts = self._grid.first(at)
        return self.windowing.split_late(rows, at, self._is_late(at, starts, watermark), starts, watermark)

    def _is_late(self, at: Times, starts: Times, watermark: int) -> Flags:
        """Tell which rows have no time, or a first window that is settled."""
        late: Flags = ~timed(at) | (starts < self._settled(watermark))
        return late

    def _fresh(self, state: Panes, rows: pa.Table, at: Times) -> Entries:
        """Return the partial result of each key and pane of new rows."""
        groups, panes = grouped(rows, self.windowing.by), self._grid.pane(at)
        cells = pairs(groups.of, number(pa.array(panes)))
        first = firsts(cells)
        key_ids = state.key_ids.numbers(groups.keys)
        made = self._held.partials(rows, at, cells, first)
        return Entries(panes[first], key_ids[groups.of[first]], made)

    def _ended(self, state: Panes, fresh: Entries, watermark: int) -> list[Publishable]:
        """Return the windows that the clock has passed since the last step, and those that are corrected."""
        grid, before, now = self._grid, self._open(state.watermark), self._open(watermark)
        found = []
        if before < now:
            panes = state.panes.between(before, bounded(now - grid.hop + grid.size))
            found += [
                Publishable(self._windows((panes.major, panes.minor), panes, before, now), complete=True)
            ]
        again = grid.first(fresh.major) < before
        if again.any():
            starts, keys = self._changed((fresh.major[again], fresh.minor[again]), before)
            windows = merge_panes(state.panes, starts, keys, grid, self._held.merge)
            found += [Publishable(windows, complete=True)]
        return found

    def _early(self, state: Panes, fresh: Entries, watermark: int) -> list[Publishable]:
        """Return the open windows that have changed before the last time to publish them early."""
        before, now = self._passed(state.watermark), self._passed(watermark)
        old = fresh.take(np.flatnonzero(fresh.major < before))
        new = state.panes.between(before, now)
        cells = np.concatenate([old.major, new.major]), np.concatenate([old.minor, new.minor])
        if not len(cells[0]):
            return []
        panes = self._near(state, cells)
        panes = panes.take(np.flatnonzero(panes.major < now))
        return [Publishable(self._windows(cells, panes, self._open(watermark), FOREVER), complete=False)]

    def _crowded(self, state: Panes, fresh: Entries, watermark: int) -> list[Publishable]:
        """Return the open windows whose number of rows has passed a multiple of what is asked for."""
        if not isinstance(self.every, int) or not len(fresh):
            return []
        cells, still = (fresh.major, fresh.minor), self._open(watermark)
        windows = self._windows(cells, self._near(state, cells), still, FOREVER)
        new = self._windows(cells, fresh, still, FOREVER)
        passed = crowded(windows.rows, counts(new.rows), self.every)
        return [Publishable(windows.take(np.flatnonzero(passed)), complete=False)]

    def _changed(self, cells: Cells, before: int) -> Cells:
        """Return the windows from before a time that have some cells, or are compared with one that has."""
        places, starts = self._grid.windows(cells[0])
        keys = cells[1][places]
        if self._back:
            starts, keys = np.append(starts, starts + self._back), np.append(keys, keys)
        return distinct(starts[starts < before], keys[starts < before])

    def _beside(self, state: Panes, out: pa.Table, starts: Times, keys: Numbers) -> pa.Table:
        """Put beside windows how they compare with those of some time before."""
        if self.compare is None:
            return out
        asked = distinct(starts - self._back, keys)
        before = merge_panes(state.panes, *asked, self._grid, self._held.merge)
        return comparison.beside(self.windowing, out, (starts - self._back, keys), before)

    def _windows(self, cells: Cells, panes: Entries, first: int, last: int) -> Entries:
        """Merge the windows of some cells that start from one time on and before another."""
        places, starts = self._grid.windows(cells[0])
        asked = (starts >= first) & (starts < last)
        starts, keys = distinct(starts[asked], cells[1][places[asked]])
        return ready(panes, starts, keys, self._grid.size, self._held.merge)

    def _near(self, state: Panes, cells: Cells) -> Entries:
        """Return the panes that share a window with some."""
        places, panes = self._grid.near(cells[0])
        panes, keys = distinct(panes, cells[1][places])
        return state.panes.within(panes, keys, keys + 1)
