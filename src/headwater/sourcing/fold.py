"""Folding events into a state, with the timers that they start and end.

Invariant: the same events give the same state, whether they were just decided, read again, or partly in a
snapshot.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from headwater.durations import micros
from headwater.sourcing.event_schema import EventSchema
from headwater.sourcing.snapshots import FoldedState
from headwater.sourcing.timer import EventPlace, TimerFold


class Fold:
    """The state of aggregates as their events lead to it."""

    def __init__(self, initial: Any, evolve: Callable[[Any, Any], Any], timers: TimerFold):
        self.beginning = FoldedState(initial)
        self.timers = timers
        self._evolve = evolve

    def events(
        self, folded: FoldedState, events: Iterable[Any], at: int, offset: int, request_id: str | None = None
    ) -> FoldedState:
        """Return what events lead to that were recorded at a time, under one offset, for a request."""
        state, open, count = folded.state, folded.timers, folded.count
        if open and request_id is not None:
            open = self.timers.without(open, request_id)
        for part, event in enumerate(events):
            state = self._evolve(state, event)
            count += 1
            if self.timers.timers:
                open = self.timers.after(open, event, at, EventPlace(offset, part))
        return FoldedState(state, offset + 1, count, at, open)

    def ahead(
        self, folded: FoldedState, events: Sequence[Any], at: int, request_id: str | None
    ) -> FoldedState:
        """Return what events lead to that are to be appended: ``placed`` says where they came to lie."""
        folded = self.events(folded, (), at, folded.version - 1, request_id)
        for number, event in enumerate(events, -len(events)):  # of the offsets that they will have
            folded = self.events(folded, [event], at, number)
        return folded

    def placed(self, ahead: FoldedState, at: int, offsets: range) -> FoldedState:
        """Return what events have led to that were folded ahead, and have been appended."""
        timers = {
            key: replace(each, place=EventPlace(offsets[each.place.offset]))
            if each.place.offset < 0
            else each
            for key, each in ahead.timers.items()
        }
        return replace(ahead, version=offsets[-1] + 1, recorded_at=at, timers=timers)

    def rows(
        self, folded: FoldedState, rows: Iterable[Mapping[str, Any]], schema: EventSchema
    ) -> FoldedState:
        """Return what stored events lead to."""
        for row in rows:
            at, offset = micros(row["recorded_at"]), row["_offset"]
            folded = self.events(folded, schema.events(row), at, offset, row["request_id"])
        return folded

    def without_timer(self, folded: FoldedState, timer: Any) -> FoldedState:
        """Return the same without a timer that has led to nothing."""
        return replace(folded, timers={key: each for key, each in folded.timers.items() if key != timer})
