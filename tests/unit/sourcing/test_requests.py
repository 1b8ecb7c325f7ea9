"""What came of a command is found by its request id, whatever came since."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from account_kit import Deposit, Deposited, Withdraw, account
from headwater.errors import Conflict, Rejected, UsageError
from headwater.log.position import Position
from headwater.sourcing import Aggregates, requests
from headwater.sourcing.event_schema import META
from headwater.sourcing.requests import StoredRequests
from headwater.sourcing.timer import DurableTimer, EventPlace, OpenTimer, TimerFold


@pytest.fixture
def bank() -> Iterator[Aggregates]:
    with account().open("memory:") as opened:
        yield opened


@pytest.fixture
def stored(bank: Aggregates) -> Iterator[StoredRequests]:
    topic = bank.log.topic("account")
    with bank.log.conditional_producer("account") as producer:
        yield StoredRequests(producer, topic, bank.decider.schema, [*META, "cents"])


def test_a_request_is_found_with_its_events_and_its_place(bank: Aggregates, stored: StoredRequests) -> None:
    bank.execute("ada", Deposit(1))
    bank.execute("ada", Deposit(5), request_id="r1")
    bank.execute("ada", Deposit(7), request_id="r2")
    found = stored.find("ada", "r1")
    assert found is not None
    assert (found.reply.events, found.reply.version, found.reply.repeated) == ((Deposited(5),), 2, True)
    assert found.reply.position == Position("account", {0: 2}, stored.topic.id)
    assert (found.command, found.rejection) == ("Deposit", None)


def test_a_request_is_one_of_its_key(bank: Aggregates, stored: StoredRequests) -> None:
    bank.execute("ada", Deposit(5), request_id="r1")
    assert stored.is_stored("ada", "r1") and not stored.is_stored("bob", "r1")
    assert stored.find("bob", "r1") is None and stored.find("ada", "r2") is None


def test_the_first_reply_is_given_to_the_same_command_only(bank: Aggregates, stored: StoredRequests) -> None:
    first = bank.execute("ada", Deposit(5), request_id="r1")
    assert stored.first_reply("ada", Deposit(5), "r1") == first
    with pytest.raises(UsageError, match="used for another command"):
        stored.first_reply("ada", Withdraw(5), "r1")


def test_a_rejection_that_was_recorded_is_told_again(bank: Aggregates, stored: StoredRequests) -> None:
    with pytest.raises(Rejected):
        bank.execute("ada", Withdraw(5), request_id="r1", remember=True)
    with pytest.raises(Rejected, match="overdrawn"):
        stored.first_reply("ada", Withdraw(5), "r1")


def test_an_append_under_the_condition_of_a_request_is_made_once(
    bank: Aggregates, stored: StoredRequests
) -> None:
    bank.execute("ada", Deposit(5), request_id="r1")
    rows = [row for batch in bank.log.read("account") for row in batch.to_pylist()]
    with pytest.raises(Conflict) as refused:
        stored.producer.append(rows, conditions=[requests.once("ada", "r1")])
    assert refused.value.condition == requests.once("ada", "r1")
    stored.producer.append(rows, conditions=[requests.once("ada", "r2")])


@pytest.mark.parametrize("id", ["", "é" * 101, 7, "timer:0:0", "process:a:0"])
def test_what_is_no_request_id_of_a_caller_is_refused(id: object) -> None:
    with pytest.raises(UsageError, match="request id"):
        requests.check(id)  # type: ignore[arg-type]


def test_the_request_id_of_a_timer_is_refused_to_callers() -> None:
    timer = DurableTimer(Deposited, after="1 minute", command=lambda event: Deposit(event.cents))
    id = TimerFold([timer], [Deposited]).id(OpenTimer(0, Deposited(1), EventPlace(7), 0))
    with pytest.raises(UsageError, match="of a timer"):
        requests.check(id)
    requests.check("é" * 100)
