"""Commands against a state that is folded from events: accepted, rejected, repeated, in conflict, in time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import headwater
from account_kit import Deposit, Deposited, Withdraw, Withdrawn, account, decide, evolve
from headwater.errors import Rejected, SchemaError, UsageError
from headwater.sourcing import Aggregates, Decider, DurableTimer
from headwater.testing.manual_clock import ManualClock


@pytest.fixture
def bank() -> Iterator[Aggregates]:
    with account().open("memory:") as opened:
        yield opened


def test_an_accepted_command_becomes_events_and_a_rejected_one_nothing(bank: Aggregates) -> None:
    reply = bank.execute("ada", Deposit(500))
    assert (reply.events, reply.version) == ((Deposited(500),), 1)
    with pytest.raises(Rejected, match="overdrawn") as refused:
        bank.execute("ada", Withdraw(501))
    assert refused.value.why == "overdrawn"
    bank.execute("ada", Withdraw(200))
    assert bank.state("ada") == 300
    assert list(bank.events("ada")) == [Deposited(500), Withdrawn(200)]
    assert bank.state("bob") == 0


def test_a_command_that_leads_to_nothing_has_an_empty_reply(bank: Aggregates) -> None:
    first = bank.execute("ada", Deposit(5))
    reply = bank.execute("ada", Deposit(0))
    assert (reply.events, reply.version, reply.position) == ((), first.version, first.position)


def test_a_history_has_the_command_the_time_and_the_state_after_each_event(bank: Aggregates) -> None:
    bank.execute("ada", Deposit(5), request_id="r1")
    bank.execute("ada", Withdraw(2))
    told = [(each.state, each.command, each.request_id, each.version) for each in bank.history("ada")]
    assert told == [(5, "Deposit", "r1", 1), (3, "Withdraw", None, 2)]


def test_a_repeated_request_gets_the_first_reply_and_adds_nothing(bank: Aggregates) -> None:
    bank.execute("ada", Deposit(10))
    first = bank.execute("ada", Withdraw(10), request_id="r1")
    bank.execute("ada", Deposit(3))
    again = bank.execute("ada", Withdraw(10), request_id="r1")  # which would be rejected now
    assert again == first and again.repeated and not first.repeated
    assert bank.reply("ada", "r1") == first
    assert bank.reply("ada", "r2") is None
    assert bank.state("ada") == 3
    bank.execute("bob", Deposit(1), request_id="r1")
    assert bank.state("bob") == 1, "a request id is one of its key"


def test_a_request_id_that_was_used_for_another_command_is_refused(bank: Aggregates) -> None:
    bank.execute("ada", Deposit(10), request_id="r1")
    with pytest.raises(UsageError, match="another command"):
        bank.execute("ada", Withdraw(1), request_id="r1")


def test_a_rejection_is_remembered_if_that_is_asked_for(bank: Aggregates) -> None:
    for _ in range(2):
        with pytest.raises(Rejected, match="overdrawn"):
            bank.execute("ada", Withdraw(5), request_id="r1", remember=True)
        bank.execute("ada", Deposit(10))  # which would let it through
    assert bank.state("ada") == 20
    assert bank.execute("ada", Deposit(0), request_id="r2", remember=True).events == ()
    assert bank.execute("ada", Deposit(0), request_id="r2", remember=True).repeated
    assert list(bank.events("ada")) == [Deposited(10), Deposited(10)]
    assert bank.reply("ada", "r1") is None
    with pytest.raises(UsageError, match="request id"):
        bank.execute("ada", Deposit(1), remember=True)


def test_a_request_is_remembered_by_every_process(tmp_path: Path) -> None:
    url = f"file:{tmp_path / 'log'}"
    with account().open(url) as first:
        reply = first.execute("ada", Deposit(10), request_id="r1")
    with account().open(url) as second:
        assert second.execute("ada", Deposit(10), request_id="r1") == reply
        assert second.state("ada") == 10


def test_a_decision_on_an_old_state_is_made_again(tmp_path: Path) -> None:
    url = f"file:{tmp_path / 'log'}"
    with account().open(url) as one, account().open(url) as other:
        one.execute("ada", Deposit(10))
        other.execute("ada", Withdraw(10))
        with pytest.raises(Rejected):
            one.execute("ada", Withdraw(10))
        other.execute("ada", Deposit(5))
        one.execute("ada", Withdraw(5))
        assert one.state("ada") == other.state("ada") == 0


def test_threads_that_withdraw_at_once_never_overdraw(bank: Aggregates) -> None:
    bank.execute("ada", Deposit(50))

    def withdraw(number: int) -> bool:
        try:
            bank.execute("ada", Withdraw(1), request_id=str(number // 2))
            return True
        except Rejected:
            return False

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(withdraw, range(200))) == 100  # fifty, and each told twice
    assert bank.state("ada") == 0
    assert len(list(bank.events("ada"))) == 51


@pytest.mark.parametrize(
    ("key", "command", "id"),
    [("", Deposit(1), None), (7, Deposit(1), None), ("a", Deposited(1), None), ("a", Deposit(1), ""),
     ("a", Deposit(1), "timer:1"), ("a", Deposit(1), "x" * 300)],
    ids=str,
)  # fmt: skip
def test_what_cannot_be_meant_is_refused(bank: Aggregates, key: Any, command: Any, id: Any) -> None:
    with pytest.raises(UsageError):
        bank.execute(key, command, request_id=id)


def unlucky(balance: int, event: Any) -> int:
    if event.cents == 13:
        raise ValueError("unlucky")
    return evolve(balance, event)


@pytest.mark.parametrize("cents", [13, None])
def test_what_cannot_be_folded_or_read_again_is_not_stored(cents: Any) -> None:
    deposits = account(evolve=unlucky, decide=lambda balance, command: [Deposited(command.cents)])
    with deposits.open("memory:") as bank:
        bank.execute("ada", Deposit(5))
        with pytest.raises((ValueError, SchemaError), match=r"unlucky|is None"):
            bank.execute("ada", Deposit(cents), request_id="r1")
        bank.execute("ada", Deposit(2), request_id="r1")
        assert (bank.state("ada"), bank.version("ada")) == (7, 2)


def test_a_repeated_request_gets_the_first_reply_though_it_could_not_be_decided_now() -> None:
    def fails_when_empty(balance: int, command: Any) -> Sequence[Any]:
        if isinstance(command, Withdraw) and not balance:
            raise KeyError("there is nothing")
        return decide(balance, command)

    with account(decide=fails_when_empty).open("memory:") as bank:
        bank.execute("ada", Deposit(5))
        first = bank.execute("ada", Withdraw(5), request_id="r1")
        assert bank.execute("ada", Withdraw(5), request_id="r1") == first
        for remember in (False, True):
            with pytest.raises(KeyError, match="nothing"):
                bank.execute("ada", Withdraw(5), request_id="r2", remember=remember)
        assert bank.version("ada") == 2, "an error is not remembered"


# Snapshots


def test_a_state_is_folded_from_its_snapshot_and_what_came_since(tmp_path: Path) -> None:
    url, folded = f"file:{tmp_path / 'log'}", list[int]()

    def counting(balance: int, event: Any) -> int:
        folded.append(1)
        return evolve(balance, event)

    with account(evolve=counting, snapshot_every=10).open(url) as bank:
        for _ in range(35):
            bank.execute("ada", Deposit(1))
    folded.clear()
    with account(evolve=counting, snapshot_every=10).open(url) as bank:
        assert bank.state("ada") == 35
        assert len(folded) == 5
    (tmp_path / "log" / "topics" / "account" / "snapshots.db").unlink()
    folded.clear()
    with account(evolve=counting, snapshot_every=10).open(url) as bank:
        assert bank.state("ada") == 35
        assert len(folded) == 35


def test_a_snapshot_that_does_not_meet_its_event_is_not_used(tmp_path: Path) -> None:
    for name, cents in (("one", 1), ("two", 2)):
        with account(snapshot_every=2).open(f"file:{tmp_path / name}") as bank:
            for _ in range(4):
                bank.execute("ada", Deposit(cents))
    snapshots = [tmp_path / name / "topics" / "account" / "snapshots.db" for name in ("one", "two")]
    snapshots[1].write_bytes(snapshots[0].read_bytes())
    with account(snapshot_every=2).open(f"file:{tmp_path / 'two'}") as bank:
        assert bank.state("ada") == 8


def test_a_changed_fold_does_not_use_the_snapshots_of_the_one_before(tmp_path: Path) -> None:
    url = f"file:{tmp_path / 'log'}"
    with account(snapshot_every=2).open(url) as bank:
        for _ in range(5):
            bank.execute("ada", Deposit(10))
    with account(snapshot_every=2, evolve=lambda balance, event: balance + 1).open(url) as bank:
        assert bank.state("ada") == 5


def test_states_that_have_no_room_in_memory_are_folded_again(tmp_path: Path) -> None:
    with account().open("memory:", cache=3) as bank:
        for number in range(60):
            bank.execute(f"key-{number % 10}", Deposit(number))
        assert [bank.state(f"key-{n}") for n in range(10)] == [sum(range(n, 60, 10)) for n in range(10)]


# Timers


@dataclass(frozen=True)
class Reserve:
    guest: str


@dataclass(frozen=True)
class Confirm:
    guest: str


@dataclass(frozen=True)
class Expire:
    guest: str


@dataclass(frozen=True)
class Reserved:
    guest: str


@dataclass(frozen=True)
class Confirmed:
    guest: str


@dataclass(frozen=True)
class Expired:
    guest: str


def decide_seat(state: tuple[str, str], command: Any) -> Sequence[Any]:
    status, guest = state
    if isinstance(command, Reserve):
        if status != "free":
            raise Rejected(f"the seat is {status}")
        return [Reserved(command.guest)]
    if (status, guest) != ("reserved", command.guest):
        raise Rejected(f"the seat is {status}")
    return [Confirmed(guest) if isinstance(command, Confirm) else Expired(guest)]


def evolve_seat(state: tuple[str, str], event: Any) -> tuple[str, str]:
    status = {Reserved: "reserved", Confirmed: "taken", Expired: "free"}[type(event)]
    return status, event.guest


def seat(**settings: Any) -> Decider:
    timer = DurableTimer(
        Reserved, after="15 minutes", command=lambda event: Expire(event.guest), until=[Confirmed, Expired]
    )
    return Decider(
        "seat", initial=("free", ""), decide=decide_seat, evolve=evolve_seat,
        commands=[Reserve, Confirm, Expire], events=[Reserved, Confirmed, Expired], timers=[timer],
        **settings,
    )  # fmt: skip


def test_a_reservation_expires_before_whatever_comes_after_its_time(
    tmp_path: Path,
) -> None:
    clock, url = ManualClock(), f"file:{tmp_path / 'log'}"
    with seat().open(url, clock=clock) as seats:
        seats.execute("7a", Reserve("ada"))
        clock.advance("14 minutes 59 seconds")
        with pytest.raises(Rejected, match="reserved"):
            seats.execute("7a", Reserve("bob"))
        [timer] = seats.open_timers("7a")
        assert timer.due == clock() + 1_000_000
    clock.advance("1 second")
    with seat().open(url, clock=clock) as seats:  # nobody was there when it was due
        with pytest.raises(Rejected, match="free"):
            seats.execute("7a", Confirm("ada"))
        seats.execute("7a", Reserve("bob"))
        assert list(seats.events("7a")) == [Reserved("ada"), Expired("ada"), Reserved("bob")]


def test_a_confirmation_in_time_ends_the_timer(tmp_path: Path) -> None:
    clock = ManualClock()
    with seat().open("memory:", clock=clock) as seats:
        seats.execute("7a", Reserve("ada"))
        clock.advance("14 minutes")
        seats.execute("7a", Confirm("ada"))
        clock.advance("1 day")
        seats.settle("7a")
        assert seats.state("7a") == ("taken", "ada")
        assert seats.open_timers("7a") == []


def test_two_processes_that_see_a_timer_due_carry_it_out_once(tmp_path: Path) -> None:
    clock, url = ManualClock(), f"file:{tmp_path / 'log'}"
    with seat(snapshot_every=1).open(url, clock=clock) as one, seat().open(url, clock=clock) as other:
        one.execute("7a", Reserve("ada"))
        other.state("7a")
        clock.advance("1 hour")
        one.settle("7a")
        other.settle("7a")
        assert list(one.events("7a")) == [Reserved("ada"), Expired("ada")]


def test_timers_of_one_old_event_that_was_split_are_each_carried_out() -> None:
    clock, old = ManualClock(), account("pots", timers=())
    new = account(
        "pots",
        commands=[Deposit, Withdraw],
        events=[Withdrawn],
        decide=lambda balance, command: [Withdrawn(command.cents * 10)],
        upcasters={"Deposited": lambda fields: [Withdrawn(1), Withdrawn(2)]},
        timers=[DurableTimer(Withdrawn, after="1 hour", command=lambda e: Withdraw(e.cents), by=["cents"])],
    )
    with headwater.open("memory:") as log:
        with old.open(log, clock=clock) as pots:
            pots.execute("ada", Deposit(3))
        clock.advance("1 hour")
        with new.open(log, clock=clock) as pots:
            pots.settle("ada")
            assert list(pots.events("ada")) == [Withdrawn(1), Withdrawn(2), Withdrawn(10), Withdrawn(20)]


def test_a_timer_that_was_rejected_has_ended_for_every_process() -> None:
    clock = ManualClock()
    timers = [DurableTimer(Deposited, after="1 hour", command=lambda event: Withdraw(10))]
    decider = account(timers=timers)
    with (
        headwater.open("memory:") as log,
        decider.open(log, clock=clock) as one,
        decider.open(log, clock=clock) as other,
    ):
        one.execute("ada", Deposit(5))
        clock.advance("1 hour")
        one.settle("ada")
        assert one.open_timers("ada") == other.open_timers("ada") == []
        one.execute("ada", Deposit(50))
        other.settle("ada")
        assert one.state("ada") == other.state("ada") == 55


def test_a_timer_that_is_declared_before_another_changes_nothing_about_it() -> None:
    clock, late = ManualClock(), DurableTimer(Deposited, after="2 hours", command=lambda event: Withdraw(1))
    soon = DurableTimer(Deposited, after="1 hour", command=lambda event: Deposit(0))
    with headwater.open("memory:") as log:
        with account(timers=[late]).open(log, clock=clock) as bank:
            bank.execute("ada", Deposit(5))
            clock.advance("3 hours")
            bank.settle("ada")
        with account(timers=[soon, late]).open(log, clock=clock) as bank:
            bank.settle("ada")
            assert list(bank.events("ada")) == [Deposited(5), Withdrawn(1)]


# A boundary over several keys


@dataclass(frozen=True)
class Enrol:
    course: str
    student: str


@dataclass(frozen=True)
class Enrolled:
    course: str
    student: str


def decide_enrolment(state: tuple[Enrolled, ...], command: Enrol) -> Sequence[Enrolled]:
    if sum(each.student == command.student for each in state) >= 2:
        raise Rejected("a student has two courses at the most")
    if sum(each.course == command.course for each in state) >= 3:
        raise Rejected("the course is full")
    return [Enrolled(command.course, command.student)]


def courses() -> Decider:
    """Three students of a course, two courses of a student: neither rule belongs to one key."""
    return Decider(
        "enrolment", initial=(), decide=decide_enrolment, evolve=lambda state, event: (*state, event),
        commands=[Enrol], events=[Enrolled],
        tags=lambda event: [f"student:{event.student}", f"course:{event.course}"],
        boundary=lambda key, command: [[f"student:{command.student}"], [f"course:{command.course}"]],
    )  # fmt: skip


def test_a_decision_over_several_keys_is_made_on_all_events_it_depends_on(tmp_path: Path) -> None:
    url = f"file:{tmp_path / 'log'}"
    with courses().open(url) as one, courses().open(url) as other:
        one.execute("ada", Enrol("maths", "ada"), request_id="1")
        other.execute("ada", Enrol("physics", "ada"), request_id="2")
        with pytest.raises(Rejected, match="two courses"):
            one.execute("ada", Enrol("art", "ada"))
        other.execute("bob", Enrol("maths", "bob"))
        one.execute("eve", Enrol("maths", "eve"))
        assert one.execute("ada", Enrol("maths", "ada"), request_id="1").repeated
        with pytest.raises(Rejected, match="full"):
            other.execute("kim", Enrol("maths", "kim"))


def test_an_event_of_ones_own_that_the_boundary_does_not_name_is_no_part_of_its_state() -> None:
    seen = list[Any]()

    def decide_and_tell(state: Any, command: Enrol) -> Sequence[Enrolled]:
        seen.append(state)
        return [Enrolled(command.course, command.student)]

    moving = Decider(
        "moving", initial=(), decide=decide_and_tell, evolve=lambda state, event: (*state, event),
        commands=[Enrol], events=[Enrolled], tags=lambda event: [f"course:{event.course}"],
        boundary=lambda key, command: [[f"course:{command.student}"]],
    )  # fmt: skip
    with headwater.open("memory:") as log:
        with moving.open(log) as opened:
            opened.execute("k", Enrol("8", "7"))
            opened.execute("k", Enrol("7", "7"))
            opened.execute("k", Enrol("9", "7"))
        with moving.open(log) as opened:
            opened.execute("k", Enrol("9", "7"))
    assert seen == [(), (), (Enrolled("7", "7"),), (Enrolled("7", "7"),)]


def test_threads_that_decide_over_one_boundary_never_both_pass() -> None:
    with courses().open("memory:") as opened:

        def enrol(number: int) -> bool:
            try:
                opened.execute(f"request-{number}", Enrol(f"course-{number}", "ada"))
                return True
            except Rejected:
                return False

        with ThreadPoolExecutor(8) as pool:
            assert sum(pool.map(enrol, range(16))) == 2


def test_events_are_an_ordinary_topic(bank: Aggregates) -> None:
    bank.execute("ada", Deposit(5), request_id="r1")
    [row] = [row for batch in bank.log.read("account") for row in batch.to_pylist()]
    assert {k: v for k, v in row.items() if k != "recorded_at"} == {
        "key": "ada", "event": "Deposited", "revision": 1, "command": "Deposit",
        "request_id": "r1", "rejection": None, "cents": 5,
    }  # fmt: skip
