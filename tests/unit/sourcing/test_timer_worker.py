from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

import headwater
from account_kit import Deposit, Deposited, Withdraw, Withdrawn, account
from headwater.errors import SchemaError
from headwater.sourcing import DurableTimer, TimerWorker, UniqueClaims, unique
from headwater.testing.manual_clock import ManualClock


@dataclass(frozen=True)
class Frozen:
    days: int


def takes_back(event: Deposited) -> Withdraw:
    return Withdraw(event.cents)


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


def test_a_timer_behind_an_event_that_cannot_be_read_is_carried_out_once_it_can() -> None:
    clock, timers = ManualClock(), [DurableTimer(Deposited, after="1 minute", command=takes_back)]
    older = account(
        events=[Deposited, Withdrawn, Frozen],
        decide=lambda balance, command: [Frozen(1)],
        evolve=lambda balance, event: balance,
    )
    with headwater.open("memory:") as log:
        for key in ("before", "old", "after"):
            with (older if key == "old" else account()).open(log, clock=clock) as bank:
                bank.execute(key, Deposit(5))
        clock.advance("5 minutes")
        with account(timers=timers).open(log, clock=clock) as bank, TimerWorker(bank) as worker:
            assert worker.step(1) == 1
            assert bank.state("before") == 0, "what comes before it is not held up"
            for _ in range(3):
                with pytest.raises(SchemaError, match='"Frozen"'):
                    worker.step(1)
            assert log.lag("timers.account")[0].committed == 1
        readable = account(timers=timers, upcasters={"Frozen": lambda fields: Deposited(fields["days"])})
        with readable.open(log, clock=clock) as bank, TimerWorker(bank) as worker:
            for _ in range(3):
                worker.step(0.2)
            assert [bank.state(key) for key in ("before", "old", "after")] == [0, 0, 0]
