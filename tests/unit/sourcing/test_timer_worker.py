from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from headwater.sourcing import TimerWorker, UniqueClaims, unique
from headwater.testing.manual_clock import ManualClock


@contextmanager
def at_work(root: Path, clock: ManualClock) -> Iterator[tuple[UniqueClaims, TimerWorker]]:
    seats = unique("seat", hold="15 minutes")
    with seats.open(f"file:{root / 'log'}", clock=clock) as opened, TimerWorker(opened.aggregates) as worker:
        yield opened, worker


def test_a_timer_is_carried_out_when_it_is_due_also_after_a_restart(tmp_path: Path) -> None:
    clock = ManualClock()
    with at_work(tmp_path, clock) as (seats, worker):
        seats.claim("7a", "ada")
        seats.claim("7b", "bob")
        clock.advance("14 minutes")
        assert worker.step(1) == 0
        seats.confirm("7b", "bob")
        seats.claim("7c", "eve")
    clock.advance("1 minute")
    with at_work(tmp_path, clock) as (seats, worker):
        for _ in range(3):
            worker.step(0.2)
        owners = [seats.aggregates.state(value).owner for value in ("7a", "7b", "7c")]
        assert owners == [None, "bob", "eve"]
        clock.advance("14 minutes")
        for _ in range(2):
            worker.step(0.2)
        assert seats.aggregates.state("7c").owner is None
        assert seats.aggregates.log.lag("timers.seat.claims")[0].records == 0
