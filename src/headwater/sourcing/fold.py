"""Folding events into a state, with the timers that they start and end.

Invariant: the same events give the same state, whether they were just decided, read again, or partly in a
snapshot.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from headwater.durations import micros
from headwater.sourcing.event_schema import EventSchema
from headwater.sourcing.snapshots import FoldedState
from headwater.sourcing.timer import TimerFold


class Fold:
    """The state of aggregates as their events lead to it."""

    def __init__(self, initial: Any, evolve: Callable[[Any, Any], Any], timers: TimerFold):
        self.beginning = FoldedState(initial)
        self.timers = timers
        self._evolve = evolve

    def events(self, folded: FoldedState, events: Iterable[Any], at: int, offset: int) -> FoldedState:
        """Return what events lead to that were recorded at a time, under one offset."""
        state, open, count = folded.state, folded.timers, folded.count
        for event in events:
            state = self._evolve(state, event)
            count += 1
            if self.timers.timers:
                open = self.timers.after(open, event, at, offset)
        return FoldedState(state, offset + 1, count, at, open)

    def rows(
        self, folded: FoldedState, rows: Iterable[Mapping[str, Any]], schema: EventSchema
    ) -> FoldedState:
        """Return what stored events lead to."""
        for row in rows:
            folded = self.events(folded, schema.events(row), micros(row["recorded_at"]), row["_offset"])
        return folded

    def without_timer(self, folded: FoldedState, timer: Any) -> FoldedState:
        """Return the same without a timer that has led to nothing."""
        return replace(folded, timers={key: each for key, each in folded.timers.items() if key != timer})
