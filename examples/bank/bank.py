"""A bank: transfers between accounts in different partitions, without atomic commit, and money that adds up.

A transfer is a request, then a debit and a credit that are known by it, each a command of one account. After
a kill in between, a process goes on with it; what was done already is found by its request id.

    with headwater.open("file:./data") as log, account.open(log) as accounts, transfer.open(log) as transfers:
        accounts.execute("ada", Deposit(100))
        transfers.execute("t-1", RequestTransfer("ada", "bob", 30))
        settle(log)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Any

from headwater import Log
from headwater.sourcing import Decider, ProcessManager, PublishedEvent, RefusedStep, Rejected, Send

PARTITIONS = 4

# Accounts: what each has, and nothing of any other


@dataclass(frozen=True)
class Deposit:
    cents: int


@dataclass(frozen=True)
class Withdraw:
    cents: int


@dataclass(frozen=True)
class Debit:
    """Take money out for a transfer."""

    transfer: str
    cents: int
    target: str


@dataclass(frozen=True)
class Credit:
    """Put in what a transfer has taken out elsewhere; also back where it came from."""

    transfer: str
    cents: int


@dataclass(frozen=True)
class CheckBalance:
    """Pay what is missing, if a withdrawal was let through though there was too little."""


@dataclass(frozen=True)
class Deposited:
    cents: int


@dataclass(frozen=True)
class Withdrawn:
    cents: int


@dataclass(frozen=True)
class Debited:
    transfer: str
    cents: int
    target: str


@dataclass(frozen=True)
class Credited:
    transfer: str
    cents: int


@dataclass(frozen=True)
class OverdraftForgiven:
    """The bank has paid what was missing: the apology for a check that came too late."""

    cents: int


def decide_account(balance: int, command: Any) -> Sequence[Any]:
    """Check a command against the balance of its account: the strict constraint."""
    if not isinstance(command, CheckBalance) and command.cents <= 0:
        raise Rejected("an amount is more than nothing")
    if isinstance(command, Withdraw | Debit) and command.cents > balance:
        raise Rejected("overdrawn", detail=f"{balance} is there, {command.cents} is asked for")
    return decide_loosely(balance, command)


def decide_loosely(balance: int, command: Any) -> Sequence[Any]:
    """Let everything through: the constraint is checked after the fact, by ``apologies``."""
    if isinstance(command, CheckBalance):
        return [OverdraftForgiven(-balance)] if balance < 0 else []
    if isinstance(command, Debit):
        return [Debited(command.transfer, command.cents, command.target)]
    if isinstance(command, Credit):
        return [Credited(command.transfer, command.cents)]
    return [Deposited(command.cents) if isinstance(command, Deposit) else Withdrawn(command.cents)]


def evolve_account(balance: int, event: Any) -> int:
    return balance + (-event.cents if isinstance(event, Withdrawn | Debited) else event.cents)


COMMANDS = [Deposit, Withdraw, Debit, Credit, CheckBalance]
EVENTS = [Deposited, Withdrawn, Debited, Credited, OverdraftForgiven]

account = Decider(
    "account", initial=0, decide=decide_account, evolve=evolve_account,
    commands=COMMANDS, events=EVENTS, partitions=PARTITIONS,
)  # fmt: skip
loose_account = Decider(
    "loose_account", initial=0, decide=decide_loosely, evolve=evolve_account,
    commands=COMMANDS, events=EVENTS, partitions=PARTITIONS,
)  # fmt: skip

# Transfers: what was asked for, and what came of it


@dataclass(frozen=True)
class RequestTransfer:
    source: str
    target: str
    cents: int


@dataclass(frozen=True)
class RefuseTransfer:
    why: str


@dataclass(frozen=True)
class TransferRequested:
    source: str
    target: str
    cents: int


@dataclass(frozen=True)
class TransferRefused:
    why: str


def decide_transfer(status: str, command: Any) -> Sequence[Any]:
    if isinstance(command, RefuseTransfer):
        return [] if status == "refused" else [TransferRefused(command.why)]
    if status != "new":
        raise Rejected(
            "a transfer is asked for once", hint="send it again with its request id, or as another"
        )
    if command.source == command.target or command.cents <= 0:
        raise Rejected("a transfer is of some money, between two accounts")
    return [TransferRequested(command.source, command.target, command.cents)]


transfer = Decider(
    "transfer", initial="new", decide=decide_transfer,
    evolve=lambda status, event: "requested" if isinstance(event, TransferRequested) else "refused",
    commands=[RequestTransfer, RefuseTransfer], events=[TransferRequested, TransferRefused],
)  # fmt: skip

# What leads to what


def debit(published: PublishedEvent) -> Iterator[Send]:
    event = published.event
    if isinstance(event, TransferRequested):
        yield Send(account, event.source, Debit(published.key, event.cents, event.target))


def refuse(refusal: RefusedStep) -> Iterator[Send]:
    yield Send(transfer, refusal.published.key, RefuseTransfer(refusal.why))


def credit(published: PublishedEvent) -> Iterator[Send]:
    event = published.event
    if isinstance(event, Debited):
        yield Send(account, event.target, Credit(event.transfer, event.cents))


def give_back(refusal: RefusedStep) -> Iterator[Send]:
    event = refusal.published.event
    yield Send(account, refusal.published.key, Credit(event.transfer, event.cents))


debits = ProcessManager("debits", reads=transfer, react=debit, compensate=refuse)
credits = ProcessManager("credits", reads=account, react=credit, compensate=give_back)


def settle(log: Log) -> None:
    """Carry out what is to be done for transfers, until nothing is left."""
    with ExitStack() as stack:
        running = [stack.enter_context(each.open(log)) for each in (debits, credits)]
        while sum(each.catch_up() for each in running):
            continue


# The loosely checked constraint


def check_balance(published: PublishedEvent) -> Iterator[Send]:
    if isinstance(published.event, Withdrawn):
        yield Send(loose_account, published.key, CheckBalance())


apologies = ProcessManager("apologies", reads=loose_account, react=check_balance)


# The proof


@dataclass(frozen=True)
class Books:
    """What the events of all accounts add up to: at every moment, to nothing."""

    balances: dict[str, int] = field(default_factory=dict)
    in_flight: dict[str, int] = field(default_factory=dict)
    """Of each transfer that was debited and not yet credited, how much."""
    outside: int = 0
    """What came from outside, as what is owed to it: deposits are negative."""

    @property
    def total(self) -> int:
        return sum(self.balances.values()) + sum(self.in_flight.values()) + self.outside

    def after(self, key: str, event: Any) -> Books:
        balances = {**self.balances, key: evolve_account(self.balances.get(key, 0), event)}
        in_flight, outside = dict(self.in_flight), self.outside
        if isinstance(event, Debited):
            assert event.transfer not in in_flight, f"transfer {event.transfer} was debited twice"
            in_flight[event.transfer] = event.cents
        elif isinstance(event, Credited):
            owed = in_flight.pop(event.transfer, 0)
            assert owed == event.cents, f"transfer {event.transfer} was credited {event.cents}, owed {owed}"
        else:
            outside += event.cents if isinstance(event, Withdrawn) else -event.cents
        return replace(self, balances=balances, in_flight=in_flight, outside=outside)


def audit(log: Log) -> Books:
    """Add up all accounts, event by event in the order in which they were recorded, and check each sum.

    A credit is recorded after its debit, in another partition: so the order is that of receipt.
    """
    rows = [row for batch in log.read("account", meta=True) for row in batch.to_pylist()]
    books = Books()
    for row in sorted(rows, key=_moment):
        for event in account.schema.events(row):
            books = books.after(row["key"], event)
            assert books.total == 0, f"money was made or lost: {books.total} after {event}"
            assert books.balances[row["key"]] >= 0, f"{row['key']} is overdrawn"
    return books


def _moment(row: dict[str, Any]) -> tuple[Any, bool]:
    return row["_received"], row["event"] == "Credited"
