from __future__ import annotations

from account_kit import Deposited, Withdrawn, evolve
from headwater.durations import instant
from headwater.sourcing.event_schema import EventSchema, Recording
from headwater.sourcing.fold import Fold
from headwater.sourcing.timer import DurableTimer, TimerFold

EVENTS = [Deposited, Withdrawn]
TIMERS = TimerFold([DurableTimer(Deposited, after="1 second", command=lambda event: event)], EVENTS)


def test_events_that_were_decided_and_those_that_are_read_give_the_same_state() -> None:
    fold, schema = Fold(0, evolve, TIMERS), EventSchema("account", EVENTS, {})
    events, decided, rows = [Deposited(5), Deposited(7), Withdrawn(3)], fold.beginning, []
    for offset, event in enumerate(events, 10):
        decided = fold.events(decided, [event], offset * 1000, offset)
        row = schema.row(event, Recording("ada", instant(offset * 1000), None, None))
        rows.append({**row, "_offset": offset})
    assert fold.rows(fold.beginning, rows, schema) == decided
    assert (decided.state, decided.version, decided.count, decided.recorded_at) == (9, 13, 3, 12_000)
    [(key, timer)] = decided.timers.items()
    assert timer.place.offset == 11
    assert fold.without_timer(decided, key).timers == {}
    ahead = fold.ahead(fold.beginning, events, 12_000, None)
    placed = fold.placed(ahead, 12_000, range(10, 13))
    assert (placed.state, placed.version, placed.count, placed.recorded_at) == (9, 13, 3, 12_000)
    assert [each.place for each in placed.timers.values()] == [timer.place]
