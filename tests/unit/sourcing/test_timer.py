from __future__ import annotations

from dataclasses import dataclass

import pytest

from headwater.errors import UsageError
from headwater.sourcing.timer import DurableTimer, OpenTimer, TimerFold, due

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
    one = FOLD.after({}, Reserved("a"), 0, 7)
    both = FOLD.after(one, Reserved("b"), 60 * SECOND, 8)
    assert due(both, 899 * SECOND) is None
    found = due(both, 900 * SECOND)
    assert found is not None and found[1] == OpenTimer(900 * SECOND, Reserved("a"), 7, 0)
    assert FOLD.command(found[1]) == "a"
    left = FOLD.after(both, Confirmed("a"), 61 * SECOND, 9)
    assert [each.event for each in left.values()] == [Reserved("b")]
    assert len(one) == 1, "what was given is not changed"


def test_an_event_that_comes_again_starts_it_anew() -> None:
    later = FOLD.after(FOLD.after({}, Reserved("a"), 0, 7), Reserved("a"), 5 * SECOND, 8)
    assert [each.due for each in later.values()] == [905 * SECOND]


def test_a_timer_over_an_event_of_others_is_refused() -> None:
    with pytest.raises(UsageError, match="Confirmed"):
        TimerFold([TIMER], [Reserved])
