from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from headwater.errors import UsageError
from headwater.sourcing.timer import DurableTimer, EventPlace, OpenTimer, TimerFold, due

SECOND = 1_000_000


@dataclass(frozen=True)
class Reserved:
    seat: str


@dataclass(frozen=True)
class Confirmed:
    seat: str


TIMER = DurableTimer(
    Reserved, after="15 minutes", command=lambda event: event.seat, until=[Confirmed], by=["seat"]
)
FOLD = TimerFold([TIMER], [Reserved, Confirmed])


def test_a_timer_is_open_from_its_event_until_another_one() -> None:
    one = FOLD.after({}, Reserved("a"), 0, EventPlace(7))
    both = FOLD.after(one, Reserved("b"), 60 * SECOND, EventPlace(8))
    assert due(both, 899 * SECOND) is None
    found = due(both, 900 * SECOND)
    assert found is not None and found[1] == OpenTimer(900 * SECOND, Reserved("a"), EventPlace(7), 0)
    assert FOLD.command(found[1]) == "a"
    left = FOLD.after(both, Confirmed("a"), 61 * SECOND, EventPlace(9))
    assert [each.event for each in left.values()] == [Reserved("b")]
    assert len(one) == 1, "what was given is not changed"


def test_an_event_that_comes_again_starts_it_anew() -> None:
    later = FOLD.after(
        FOLD.after({}, Reserved("a"), 0, EventPlace(7)), Reserved("a"), 5 * SECOND, EventPlace(8)
    )
    assert [each.due for each in later.values()] == [905 * SECOND]


def test_a_timer_over_an_event_of_others_is_refused() -> None:
    with pytest.raises(UsageError, match="Confirmed"):
        TimerFold([TIMER], [Reserved])


def test_a_name_that_an_event_of_the_timer_has_not_is_refused_when_it_is_declared() -> None:
    with pytest.raises(UsageError, match='"row", which event "Reserved" has not'):
        TimerFold([replace(TIMER, by=["row"])], [Reserved, Confirmed])


def test_a_timer_is_known_by_its_event_and_command_wherever_it_is_declared() -> None:
    number = DurableTimer(Reserved, after="1 hour", command=lambda event: 7)
    alone, behind = (
        TimerFold([TIMER], [Reserved, Confirmed]),
        TimerFold([number, TIMER], [Reserved, Confirmed]),
    )
    place = EventPlace(7, 1)
    assert alone.id(OpenTimer(0, Reserved("a"), place, 0)) == "timer:7:1:str:0"
    assert behind.id(OpenTimer(0, Reserved("a"), place, 1)) == "timer:7:1:str:0"
    assert behind.id(OpenTimer(0, Reserved("a"), place, 0)) == "timer:7:1:int:0"
    twice = TimerFold([TIMER, TIMER], [Reserved, Confirmed])
    assert twice.id(OpenTimer(0, Reserved("a"), place, 1)) == "timer:7:1:str:1"


def test_what_is_recorded_for_a_timer_ends_it_and_no_other() -> None:
    both = FOLD.after(FOLD.after({}, Reserved("a"), 0, EventPlace(7)), Reserved("b"), 0, EventPlace(7, 1))
    assert FOLD.without(both, "r1") == FOLD.without(both, "timer:70:0:str:0") == both
    left = FOLD.without(both, "timer:7:0:str:0")
    assert [each.event for each in left.values()] == [Reserved("b")]


def test_what_is_no_length_of_time_is_refused_when_the_timer_is_declared() -> None:
    with pytest.raises(UsageError, match="2 parsecs"):
        DurableTimer(Reserved, after="2 parsecs", command=lambda event: event)
