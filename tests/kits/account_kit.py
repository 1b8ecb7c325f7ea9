"""A small decider that tests share: accounts with a balance, and what must hold for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from headwater import Pipeline
from headwater.sourcing import Decider, Rejected


@dataclass(frozen=True)
class Deposit:
    cents: int


@dataclass(frozen=True)
class Withdraw:
    cents: int


@dataclass(frozen=True)
class Deposited:
    cents: int


@dataclass(frozen=True)
class Withdrawn:
    cents: int


def decide(balance: int, command: Deposit | Withdraw) -> Sequence[Deposited | Withdrawn]:
    if isinstance(command, Deposit):
        return [Deposited(command.cents)] if command.cents else []
    if command.cents > balance:
        raise Rejected("overdrawn", detail=f"{balance} is there, {command.cents} is asked for")
    return [Withdrawn(command.cents)]


def evolve(balance: int, event: Deposited | Withdrawn) -> int:
    return balance + (event.cents if isinstance(event, Deposited) else -event.cents)


def account(name: str = "account", **settings: Any) -> Decider:
    """Return the decider; ``settings`` are those of ``Decider``."""
    return Decider(
        name,
        **{"initial": 0, "decide": decide, "evolve": evolve, "commands": [Deposit, Withdraw],
           "events": [Deposited, Withdrawn], **settings},
    )  # fmt: skip


def handling_bank(log: str = "file:./data") -> Pipeline:
    """Return a pipeline that decides the commands of accounts, and tells balances."""
    bank, decider = Pipeline("bank", log=log), account()
    bank.handler(decider)
    bank.query("balance", decider, lambda state, arguments: {"cents": state, **arguments})
    return bank
