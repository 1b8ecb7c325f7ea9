"""``examples/bank``: transfers without atomic commit, an audit at every moment, and apologies."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import headwater
from headwater import Log
from headwater.errors import Rejected
from headwater.sourcing.event_schema import Recording

sys.path.append(str(Path(__file__).parents[3] / "examples" / "bank"))
import latency

import bank


@pytest.fixture
def log() -> Iterator[Log]:
    with headwater.open("memory:") as opened:
        yield opened


@pytest.mark.slow
def test_transfers_between_partitions_add_up_and_an_overdraft_is_refused(log: Log) -> None:
    chance, names = random.Random(3), [f"account-{n}" for n in range(8)]
    with bank.account.open(log) as accounts, bank.transfer.open(log) as transfers:
        for name in names:
            accounts.execute(name, bank.Deposit(100))
        with pytest.raises(Rejected, match="overdrawn"):
            accounts.execute(names[0], bank.Withdraw(101))
        for number in range(40):
            source, target = chance.sample(names, 2)
            request = bank.RequestTransfer(source, target, chance.randint(1, 60))
            transfers.execute(f"t-{number}", request, request_id=f"r-{number}")
        bank.settle(log)
        books = bank.audit(log)
        assert books.in_flight == {}
        assert sum(books.balances.values()) == 800
        assert {name: accounts.state(name) for name in names} == books.balances
        refused = [n for n in range(40) if transfers.state(f"t-{n}") == "refused"]
        assert refused, "some had too little"
        moved = {
            each.event.transfer
            for name in names
            for each in accounts.history(name)
            if hasattr(each.event, "transfer")
        }
        assert moved == {f"t-{n}" for n in range(40) if n not in refused}


@pytest.mark.slow
def test_money_in_flight_is_counted(log: Log) -> None:
    with bank.account.open(log) as accounts, bank.transfer.open(log) as transfers:
        accounts.execute("ada", bank.Deposit(100))
        transfers.execute("t-1", bank.RequestTransfer("ada", "bob", 30))
        with bank.debits.open(log) as running:
            running.catch_up()
        books = bank.audit(log)
        assert (books.balances, books.in_flight, books.total) == ({"ada": 70}, {"t-1": 30}, 0)
        bank.settle(log)
        assert bank.audit(log).balances == {"ada": 70, "bob": 30}


def test_the_audit_finds_money_that_was_made(log: Log) -> None:
    with bank.account.open(log) as accounts:
        accounts.execute("ada", bank.Credit("t-9", 5))
        with pytest.raises(AssertionError, match="credited 5, owed 0"):
            bank.audit(log)


def test_a_transfer_is_asked_for_once(log: Log) -> None:
    with bank.transfer.open(log) as transfers:
        transfers.execute("t-1", bank.RequestTransfer("ada", "bob", 30), request_id="r")
        assert transfers.execute("t-1", bank.RequestTransfer("ada", "bob", 30), request_id="r").repeated
        with pytest.raises(Rejected, match="once"):
            transfers.execute("t-1", bank.RequestTransfer("ada", "bob", 40))


def test_what_is_checked_after_the_fact_is_made_good(log: Log) -> None:
    with bank.loose_account.open(log) as accounts:
        accounts.execute("ada", bank.Deposit(10))
        with log.producer("loose_account") as producer:
            recording = Recording("ada", headwater.clock.instant(headwater.clock.now()), "Withdraw", None)
            producer.send_batch([bank.loose_account.schema.row(bank.Withdrawn(7), recording)] * 3)
        with bank.apologies.open(log) as process:
            process.catch_up()
        assert accounts.state("ada") == 0
        assert [type(each).__name__ for each in accounts.events("ada")][-1:] == ["OverdraftForgiven"]


@pytest.mark.slow
def test_what_each_costs_is_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    latency.COUNT = 20
    latency.main(str(tmp_path / "log"))
    printed = capsys.readouterr().out
    assert "checked before" in printed and "balance 0" in printed
