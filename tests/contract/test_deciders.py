"""Deciders on every backend: the same commands have the same results, also after a restart."""

from __future__ import annotations

import pytest

from account_kit import Deposit, Deposited, Withdraw, Withdrawn, account
from contract_kit import Backend
from headwater.errors import Fenced, Rejected
from headwater.sourcing import ProcessManager, PublishedEvent, Send, TimerWorker, history, unique
from headwater.testing.manual_clock import ManualClock


def test_commands_become_events_once_and_a_restart_knows_them(backend: Backend, name: str) -> None:
    decider = account(name, partitions=2, snapshot_every=3)
    with decider.open(backend.log) as bank:
        first = bank.execute("ada", Deposit(500), request_id="r1")
        with pytest.raises(Rejected, match="overdrawn"):
            bank.execute("ada", Withdraw(501))
        for _ in range(4):
            bank.execute("ada", Withdraw(100))
        bank.execute("bob", Deposit(7))
        assert bank.execute("ada", Deposit(500), request_id="r1") == first
        assert backend.log.topic(name).id == first.position.id
    log = backend.again()
    with decider.open(log) as bank:
        assert bank.execute("ada", Deposit(500), request_id="r1") == first
        assert (bank.state("ada"), bank.state("bob")) == (100, 7)
        assert list(bank.events("ada")) == [Deposited(500), *[Withdrawn(100)] * 4]
        assert [each.state for each in history(decider, log, "ada")] == [500, 400, 300, 200, 100]


def test_two_writers_never_spend_the_same_money(backend: Backend, name: str) -> None:
    decider = account(name)
    with decider.open(backend.log) as one:
        one.execute("ada", Deposit(10))
        with decider.open(backend.again()) as other:
            spent = 0
            for each in (one, other, one, other):
                try:
                    each.execute("ada", Withdraw(6))
                    spent += 6
                except (Rejected, Fenced):
                    continue
            assert spent == 6
            assert other.state("ada") == 4


def test_unique_values_expire_by_timers(backend: Backend, name: str) -> None:
    clock = ManualClock()
    with unique(name, hold="15 minutes").open(backend.log, clock=clock) as names:
        names.claim("ada", "user-1")
        with pytest.raises(Rejected, match="taken"):
            names.claim("ada", "user-2")
        clock.advance("15 minutes")
        with TimerWorker(names.aggregates) as worker:
            for _ in range(50):
                if worker.step(0.2):
                    break
        assert names.aggregates.state("ada").owner is None
        names.claim("ada", "user-2")


def test_processes_carry_events_on(backend: Backend, name: str) -> None:
    savings, fees = account(name), account(f"{name}-fees")

    def pays(published: PublishedEvent) -> list[Send]:
        return [Send(fees, "all", Deposit(published.event.cents // 10))]

    process = ProcessManager(f"paying-{name}", reads=savings, react=pays)
    with savings.open(backend.log) as accounts, fees.open(backend.log) as open_fees:
        accounts.execute("ada", Deposit(100))
        for _ in range(2):
            with process.open(backend.log, using=[open_fees]) as running:
                for _ in range(100):
                    if running.step(0.2):
                        break
            if backend.kind != "kafka":  # which moves no group that has just had members
                backend.log.seek(f"process.paying-{name}", name, "earliest")
                continue
            break
        assert open_fees.state("all") == 10
