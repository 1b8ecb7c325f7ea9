"""Timers of an aggregate: after an event, a command, unless another event comes first.

A timer is folded from the events as the state is, so it is there after a restart, and kept nowhere else. It
is due some time after its event was recorded. Before any command of its key is decided, those that are due
are carried out: so it makes no difference whether anybody was there to see it at the very time.

Invariant: what a timer leads to is decided once, after it is due, and before whatever comes later.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from operator import attrgetter
from typing import Any

from headwater.durations import MICROSECOND, interval
from headwater.errors import UsageError

TimerKey = tuple[int, tuple[Any, ...]]


@dataclass(frozen=True)
class DurableTimer:
    """A command that follows an event after some time, unless another event comes first.

    - ``on``: the event that starts it.
    - ``after``: how long after the event was recorded, ``"15 minutes"``.
    - ``command``: from the event to the command.
    - ``until=()``: the events that end it.
    - ``by=()``: names of fields that they share: an event with other values neither ends it nor starts it
      anew. Without them an aggregate has one such timer.

    >>> DurableTimer(int, after="15 minutes", command=lambda event: event).length
    datetime.timedelta(seconds=900)
    """

    on: type
    after: str | timedelta
    command: Callable[[Any], Any]
    until: Sequence[type] = ()
    by: Sequence[str] = ()

    @property
    def length(self) -> timedelta:
        """How long after its event it is due."""
        return interval(self.after)


@dataclass(frozen=True)
class OpenTimer:
    """A timer that has been started and has not ended."""

    due: int
    """In microseconds since 1970."""
    event: Any
    offset: int
    """Of the event that started it, by which the command is known."""
    timer: int
    """Its index among the decider's timers."""


class TimerFold:
    """Follows which timers of an aggregate are open."""

    def __init__(self, timers: Sequence[DurableTimer], events: Sequence[type]):
        self.timers = tuple(timers)
        for each in self.timers:
            for kind in (each.on, *each.until):
                if kind not in events:
                    raise UsageError(f"timer over an event that the decider has not: {kind.__name__}")
        self._lengths = [each.length // MICROSECOND for each in self.timers]
        self._by = [_values(each.by) for each in self.timers]

    def after(
        self, open: Mapping[TimerKey, OpenTimer], event: Any, at: int, offset: int
    ) -> Mapping[TimerKey, OpenTimer]:
        """Return which timers are open after an event that was recorded at a time."""
        changed = open
        for number, timer in enumerate(self.timers):
            if type(event) is timer.on:
                started = OpenTimer(at + self._lengths[number], event, offset, number)
                changed = {**changed, (number, self._by[number](event)): started}
            elif type(event) in timer.until:
                ended = (number, self._by[number](event))
                changed = {key: each for key, each in changed.items() if key != ended}
        return changed

    def command(self, timer: OpenTimer) -> Any:
        """Return the command that a timer leads to."""
        return self.timers[timer.timer].command(timer.event)


def due(open: Mapping[TimerKey, OpenTimer], now: int) -> tuple[TimerKey, OpenTimer] | None:
    """Return the timer that was due first, if one is."""
    first = min(open.items(), key=lambda item: (item[1].due, item[1].offset), default=None)
    return first if first is not None and first[1].due <= now else None


def _values(names: Sequence[str]) -> Callable[[Any], tuple[Any, ...]]:
    if not names:
        return lambda event: ()
    getters = [attrgetter(name) for name in names]
    return lambda event: tuple(getter(event) for getter in getters)
