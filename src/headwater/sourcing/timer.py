"""Timers of an aggregate: after an event, a command, unless another event comes first.

A timer is folded from the events as the state is, so it is there after a restart, and kept nowhere else. It
is due some time after its event was recorded. Before any command of its key is decided, those that are due
are carried out: so it makes no difference whether anybody was there to see it at the very time.

Invariant: what a timer leads to is decided once, after it is due, and before whatever comes later.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from datetime import timedelta
from operator import attrgetter
from typing import Any

from headwater.durations import MICROSECOND, interval
from headwater.errors import UsageError

TIMER_ID = "timer:"
"""How the request ids of timers begin."""
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

    It ends with what comes of its command: events, none, or a rejection, which is recorded.

    >>> DurableTimer(int, after="15 minutes", command=lambda event: event).length
    datetime.timedelta(seconds=900)
    """

    on: type
    after: str | timedelta
    command: Callable[[Any], Any]
    until: Sequence[type] = ()
    by: Sequence[str] = ()

    def __post_init__(self) -> None:
        interval(self.after)  # which refuses what is no length of time

    @property
    def length(self) -> timedelta:
        """How long after its event it is due."""
        return interval(self.after)


@dataclass(frozen=True, order=True)
class EventPlace:
    """Where an event is stored."""

    offset: int
    part: int = 0
    """Which event of its record it is: an upcaster may have split an old one."""


@dataclass(frozen=True)
class OpenTimer:
    """A timer that has been started and has not ended."""

    due: int
    """In microseconds since 1970."""
    event: Any
    place: EventPlace
    """Of the event that started it, by which the command is known."""
    timer: int
    """Its index among the decider's timers, as they are declared now."""


class TimerFold:
    """Follows which timers of an aggregate are open."""

    def __init__(self, timers: Sequence[DurableTimer], events: Sequence[type]):
        self.timers = tuple(timers)
        for each in self.timers:
            for kind in (each.on, *each.until):
                if kind not in events:
                    raise UsageError(f"timer over an event that the decider has not: {kind.__name__}")
            _check_names(each)
        self._lengths = [each.length // MICROSECOND for each in self.timers]
        self._by = [_values(each.by) for each in self.timers]

    def after(
        self, open: Mapping[TimerKey, OpenTimer], event: Any, at: int, place: EventPlace
    ) -> Mapping[TimerKey, OpenTimer]:
        """Return which timers are open after an event that was recorded at a time."""
        changed = open
        for number, timer in enumerate(self.timers):
            if type(event) is timer.on:
                started = OpenTimer(at + self._lengths[number], event, place, number)
                changed = {**changed, (number, self._by[number](event)): started}
            elif type(event) in timer.until:
                ended = (number, self._by[number](event))
                changed = {key: each for key, each in changed.items() if key != ended}
        return changed

    def command(self, timer: OpenTimer) -> Any:
        """Return the command that a timer leads to."""
        return self.timers[timer.timer].command(timer.event)

    def id(self, timer: OpenTimer) -> str:
        """Return the request id under which a timer is carried out, once: by its event and its command.

        It stays as it is when timers are declared before it; of those that lead from one event to one kind
        of command, each has its number among them.
        """
        kind, number = type(self.command(timer)), 0
        for each in self.timers[: timer.timer]:
            number += each.on is type(timer.event) and type(each.command(timer.event)) is kind
        return f"{TIMER_ID}{timer.place.offset}:{timer.place.part}:{kind.__name__}:{number}"

    def without(self, open: Mapping[TimerKey, OpenTimer], request_id: str) -> Mapping[TimerKey, OpenTimer]:
        """Return which timers are open after something was recorded for a request: not its own."""
        if not request_id.startswith(TIMER_ID):
            return open
        return {key: each for key, each in open.items() if not self._is_of(each, request_id)}

    def _is_of(self, timer: OpenTimer, request_id: str) -> bool:
        place = f"{TIMER_ID}{timer.place.offset}:{timer.place.part}:"
        return request_id.startswith(place) and self.id(timer) == request_id


def due(open: Mapping[TimerKey, OpenTimer], now: int) -> tuple[TimerKey, OpenTimer] | None:
    """Return the timer that was due first, if one is."""
    first = min(open.items(), key=lambda item: (item[1].due, item[1].place), default=None)
    return first if first is not None and first[1].due <= now else None


def _check_names(timer: DurableTimer) -> None:
    for kind in (timer.on, *timer.until):
        known = [*(each.name for each in fields(kind)), *dir(kind)] if is_dataclass(kind) else dir(kind)
        for name in timer.by:
            if name.split(".")[0] not in known:
                raise UsageError(
                    f'timer by "{name}", which event "{kind.__name__}" has not',
                    hint="name fields that all of its events have",
                )


def _values(names: Sequence[str]) -> Callable[[Any], tuple[Any, ...]]:
    if not names:
        return lambda event: ()
    getters = [attrgetter(name) for name in names]
    return lambda event: tuple(getter(event) for getter in getters)
