"""Events of one account lead to commands of others, once, and what is rejected is made good."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

import headwater
from account_kit import Deposit, Deposited, Withdraw, Withdrawn, account
from headwater import Log
from headwater.errors import HeadwaterError, UsageError
from headwater.sourcing import ProcessManager, PublishedEvent, RefusedStep, Send

SAVINGS, FEES = account("savings"), account("fees")


@pytest.fixture
def log() -> Iterator[Log]:
    with headwater.open("memory:") as opened:
        yield opened


def pays_fees(published: PublishedEvent) -> list[Send]:
    """Of each deposit a tenth goes to the fees, and is taken from the account."""
    if not isinstance(published.event, Deposited) or published.event.cents < 10:
        return []
    fee = published.event.cents // 10
    return [Send(SAVINGS, published.key, Withdraw(fee)), Send(FEES, "all", Deposit(fee))]


def test_commands_follow_events_once_however_often_they_are_handled(log: Log) -> None:
    told: list[Any] = []
    process = ProcessManager(
        "fees", reads=SAVINGS, react=pays_fees, effect=lambda each: told.append(each.event)
    )
    with SAVINGS.open(log) as savings, FEES.open(log) as fees:
        savings.execute("ada", Deposit(100))
        with process.open(log) as running:
            assert running.catch_up() == 2  # the withdrawal is an event too
        log.seek("process.fees", "savings", "earliest")  # as if nothing had been committed
        with process.open(log) as running:
            running.catch_up()
        assert (savings.state("ada"), fees.state("all")) == (90, 10)
        assert told == [Deposited(100), Withdrawn(10)] * 2, "effects are repeated after a crash"
        with process.open(log) as running:
            assert running.replay() == 2
        assert (savings.state("ada"), fees.state("all")) == (90, 10)
        assert len(told) == 4, "and not in a replay"


def test_what_is_rejected_is_made_good_once_though_it_would_be_accepted_later(log: Log) -> None:
    def moves(published: PublishedEvent) -> list[Send]:
        return [Send(FEES, "all", Withdraw(50))] if isinstance(published.event, Deposited) else []

    def apologises(refusal: RefusedStep) -> list[Send]:
        assert (refusal.why, refusal.published.key) == ("overdrawn", "ada")
        return [Send(SAVINGS, refusal.published.key, Withdraw(1))]

    process = ProcessManager("moving", reads=SAVINGS, react=moves, compensate=apologises)
    with SAVINGS.open(log) as savings, FEES.open(log) as fees:
        savings.execute("ada", Deposit(100))
        with process.open(log) as running:
            running.catch_up()
        fees.execute("all", Deposit(1000))
        log.seek("process.moving", "savings", "earliest")
        with process.open(log) as running:
            running.catch_up()
        assert (savings.state("ada"), fees.state("all")) == (99, 1000)


def test_a_compensation_that_is_rejected_stops_the_process(log: Log) -> None:
    process = ProcessManager(
        "moving",
        reads=SAVINGS,
        react=lambda published: [Send(FEES, "all", Withdraw(50))],
        compensate=lambda refusal: [Send(FEES, "all", Withdraw(60))],
    )
    with SAVINGS.open(log) as savings:
        savings.execute("ada", Deposit(100))
        with process.open(log) as running, pytest.raises(HeadwaterError, match="cannot make good"):
            running.catch_up()


def test_a_compensation_that_its_decider_accepts_later_is_carried_out_then(log: Log) -> None:
    process = ProcessManager(
        "moving",
        reads=SAVINGS,
        react=lambda published: [Send(FEES, "all", Withdraw(500))],
        compensate=lambda refusal: [Send(FEES, "all", Withdraw(60)), Send(FEES, "all", Deposit(0))],
    )
    with SAVINGS.open(log) as savings, FEES.open(log) as fees, process.open(log) as running:
        savings.execute("ada", Deposit(100))
        with pytest.raises(HeadwaterError, match="cannot make good"):
            running.catch_up()
        fees.execute("all", Deposit(100))
        assert running.catch_up() == 1
        assert (running.replay(), fees.state("all")) == (1, 40)
        stored = [row["event"] for batch in log.read("fees") for row in batch.to_pylist()]
        assert stored == ["NothingHappened", "Deposited", "Withdrawn", "NothingHappened"]


def test_what_is_no_command_is_refused(log: Log) -> None:
    process = ProcessManager("moving", reads=SAVINGS, react=lambda published: ["no"])  # type: ignore[list-item]
    with SAVINGS.open(log) as savings:
        savings.execute("ada", Deposit(100))
        with process.open(log) as running, pytest.raises(UsageError, match="return Send"):
            running.catch_up()


def test_a_process_runs_until_it_is_told_to_stop(log: Log) -> None:
    stop = threading.Event()
    process = ProcessManager("fees", reads=SAVINGS, react=pays_fees)
    with SAVINGS.open(log) as savings, process.open(log) as running:
        thread = threading.Thread(target=running.run, args=(stop,))
        thread.start()
        savings.execute("ada", Deposit(100))
        for _ in range(200):
            if savings.state("ada") == 90:
                break
            stop.wait(0.05)
        stop.set()
        thread.join()
        assert savings.state("ada") == 90


@pytest.mark.parametrize("failing", ["react", "effect"])
def test_an_event_that_was_not_handled_is_the_first_of_the_next_step(log: Log, failing: str) -> None:
    broken, told = [failing], list[int]()

    def fails(what: str, published: PublishedEvent) -> None:
        if what in broken and published.event.cents == 2:
            raise OSError("the network is down")

    def copies(published: PublishedEvent) -> list[Send]:
        fails("react", published)
        return [Send(FEES, "all", Deposit(published.event.cents))]

    def tells(published: PublishedEvent) -> None:
        fails("effect", published)
        told.append(published.event.cents)

    process = ProcessManager("copying", reads=SAVINGS, react=copies, effect=tells)
    with SAVINGS.open(log) as savings, FEES.open(log) as fees, process.open(log) as running:
        for cents in (1, 2, 3):
            savings.execute("ada", Deposit(cents))
        for _ in range(2):
            with pytest.raises(OSError, match="network"):
                running.catch_up()
        broken.clear()
        savings.execute("ada", Deposit(4))
        assert running.catch_up() == 3
        assert told == [1, 2, 3, 4], "what was handled before the failure is not handled again"
        assert list(fees.events("all")) == [Deposited(1), Deposited(2), Deposited(3), Deposited(4)]


def handled_before(log: Log, *sends: Send) -> ProcessManager:
    """A process that has handled a deposit of ada's by some commands."""
    process = ProcessManager("changed", reads=SAVINGS, react=lambda published: sends)
    with SAVINGS.open(log) as savings, process.open(log) as running:
        savings.execute("ada", Deposit(100))
        assert running.catch_up() == 1
    return process


def replayed(log: Log, *sends: Send, times: int = 2) -> None:
    process = ProcessManager("changed", reads=SAVINGS, react=lambda published: sends)
    with process.open(log) as running:
        for _ in range(times):
            assert running.replay() == 1


def test_a_command_that_a_changed_process_returns_in_front_is_carried_out_and_the_others_are_not_again(
    log: Log,
) -> None:
    known = [Send(FEES, "all", Deposit(10)), Send(FEES, "all", Deposit(20))]
    handled_before(log, *known)
    replayed(log, Send(FEES, "all", Withdraw(5)), Send(FEES, "tips", Deposit(1)), *known)
    with FEES.open(log) as fees:
        assert (fees.state("all"), fees.state("tips")) == (25, 1)


def test_a_command_in_the_place_of_another_of_its_kind_and_key_is_refused(log: Log) -> None:
    known = Send(FEES, "all", Deposit(10))
    handled_before(log, known)
    with pytest.raises(UsageError, match="not the command that was carried out in its place") as caught:
        replayed(log, Send(FEES, "all", Deposit(7)), known)
    assert 'Send(…, id="bonus")' in str(caught.value.hint)
    with FEES.open(log) as fees:
        assert fees.state("all") == 10
    replayed(log, Send(FEES, "all", Deposit(7), id="bonus"), known)
    with FEES.open(log) as fees:
        assert fees.state("all") == 17


def test_two_commands_of_one_id_are_refused(log: Log) -> None:
    twice = [Send(FEES, "all", Deposit(cents), id="fee") for cents in (1, 2)]
    with pytest.raises(UsageError, match='two commands of id "fee" for "all"'):
        handled_before(log, *twice)


def test_a_process_may_have_a_name_as_long_as_any(log: Log) -> None:
    react = [Send(FEES, "all", Deposit(10))]
    process = ProcessManager("p" * 190, reads=SAVINGS, react=lambda published: react)
    with SAVINGS.open(log) as savings, process.open(log) as running:
        savings.execute("ada", Deposit(100))
        running.catch_up()
        assert running.replay() == 1
    with FEES.open(log) as fees:
        assert fees.state("all") == 10


def test_catching_up_goes_on_behind_commands_that_led_to_nothing(log: Log) -> None:
    process = ProcessManager("fees", reads=SAVINGS, react=pays_fees)
    with SAVINGS.open(log) as savings, FEES.open(log) as fees, process.open(log) as running:
        for n in range(3000):  # more than are read at once
            savings.execute("idle", Deposit(0), request_id=f"r{n}", remember=True)
        savings.execute("ada", Deposit(100))
        assert running.catch_up() == 2
        assert fees.state("all") == 10
        savings.execute("idle", Deposit(0), request_id="last", remember=True)
        assert running.catch_up() == 0
        assert [each.records for each in log.lag("process.fees")] == [0]
