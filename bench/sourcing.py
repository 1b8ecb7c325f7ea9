"""Commands per second beside ``eventsourcing``, on SQLite and on PostgreSQL, in one run and in turns.

A command deposits into or withdraws from an account, is decided on the account's state, and is a durable
event when it returns: each side syncs before it answers. All keep states in memory, as each can. One client,
and eight threads of one process over accounts of their own.
"""

from __future__ import annotations

import os
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console
from rich.table import Table

from headwater.log.open import open as open_log
from headwater.sourcing import Decider, Rejected

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "tests" / "servers")]
SECONDS = float(os.environ.get("BENCH_SECONDS", 1.5))
ROUNDS, THREADS, ACCOUNTS = int(os.environ.get("BENCH_ROUNDS", 6)), 8, 160
console = Console(width=110)
Command = Callable[[int, int], None]
"""From an account's number and a count to a deposit, or every third time a withdrawal."""


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


def decide(balance: int, command: Deposit | Withdraw) -> list[Deposited | Withdrawn]:
    if isinstance(command, Deposit):
        return [Deposited(command.cents)]
    if command.cents > balance:
        raise Rejected("overdrawn")
    return [Withdrawn(command.cents)]


ACCOUNT = Decider(
    "account",
    initial=0,
    decide=decide,
    evolve=lambda balance, event: balance + (event.cents if isinstance(event, Deposited) else -event.cents),
    commands=[Deposit, Withdraw],
    events=[Deposited, Withdrawn],
)


@contextmanager
def ours(directory: Path, requests: bool = False) -> Iterator[Command]:
    with open_log(f"file:{directory / 'log'}") as log, ACCOUNT.open(log) as bank:

        def command(account: int, count: int) -> None:
            wanted = Withdraw(1) if count % 3 == 2 else Deposit(1)
            bank.execute(f"account-{account}", wanted, request_id=str(uuid.uuid4()) if requests else None)

        yield command


@cache
def account_class() -> Any:
    """Return their aggregate: it is known by its name, so it is made once."""
    from eventsourcing.domain import Aggregate, event

    class Account(Aggregate):
        def __init__(self) -> None:
            self.balance = 0

        @event("Deposited")
        def deposit(self, cents: int) -> None:
            self.balance += cents

        @event("Withdrawn")
        def _withdrawn(self, cents: int) -> None:
            self.balance -= cents

        def withdraw(self, cents: int) -> None:
            if cents > self.balance:
                raise ValueError("overdrawn")
            self._withdrawn(cents)

    return Account


@contextmanager
def theirs(**settings: str) -> Iterator[Command]:
    from eventsourcing.application import Application

    kind = account_class()
    application = Application[object](env={"AGGREGATE_CACHE_MAXSIZE": "10000", **settings})
    ids = []
    for _ in range(ACCOUNTS):
        account = kind()
        ids.append(account.id)
        application.save(account)

    def command(number: int, count: int) -> None:
        account = application.repository.get(ids[number])
        if count % 3 == 2:
            account.withdraw(1)  # type: ignore[attr-defined]
        else:
            account.deposit(1)  # type: ignore[attr-defined]
        application.save(account)

    yield command
    application.close()


def measure(command: Command, threads: int) -> tuple[float, list[float]]:
    """Return commands per second, and how long each took."""
    latencies: list[list[float]] = [[] for _ in range(threads)]
    end = time.perf_counter() + SECONDS

    def work(thread: int) -> None:
        mine, count = range(thread, ACCOUNTS, threads), counts[thread]
        while (began := time.perf_counter()) < end:
            command(mine[count % len(mine)], count // len(mine))
            latencies[thread].append(time.perf_counter() - began)
            count += 1
        counts[thread] = count

    began = time.perf_counter()
    workers = [threading.Thread(target=work, args=(number,)) for number in range(threads)]
    for each in workers:
        each.start()
    for each in workers:
        each.join()
    every = sorted(latency for each in latencies for latency in each)
    return len(every) / (time.perf_counter() - began), every


counts = [0] * THREADS
"""How many commands each thread has sent: accounts get deposits before they are asked for money."""


def main() -> None:
    from postgres_server import running_server

    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        server = stack.enter_context(running_server(fsync="on"))
        sqlite = {"PERSISTENCE_MODULE": "eventsourcing.sqlite", "SQLITE_DBNAME": str(directory / "theirs.db")}
        postgres = {
            "PERSISTENCE_MODULE": "eventsourcing.postgres", "POSTGRES_DBNAME": "postgres",
            "POSTGRES_HOST": "127.0.0.1", "POSTGRES_PORT": str(server.port), "POSTGRES_USER": "postgres",
            "POSTGRES_PASSWORD": "none", "POSTGRES_POOL_SIZE": "10",
        }  # fmt: skip
        sides = {
            "Headwater": stack.enter_context(ours(directory)),
            "Headwater, request ids": stack.enter_context(ours(directory / "requests", requests=True)),
            "eventsourcing, SQLite": stack.enter_context(theirs(**sqlite)),
            "eventsourcing, PostgreSQL": stack.enter_context(theirs(**postgres)),
        }
        for threads in (1, THREADS):
            report(threads, sides)


def report(threads: int, sides: dict[str, Command]) -> None:
    """Measure each side in turns, and print what came of it."""
    rates: dict[str, list[float]] = {name: [] for name in sides}
    latencies: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(ROUNDS):
        for name, command in sides.items():
            counts[:] = [0] * THREADS
            rate, took = measure(command, threads)
            rates[name].append(rate)
            latencies[name] += took
    table = Table(title="one client" if threads == 1 else f"{threads} threads")
    for column in ("", "commands/s", "p50", "p99", "Headwater is"):
        table.add_column(column, justify="left" if not column else "right")
    best = median(rates["Headwater"])
    for name, every in rates.items():
        took = sorted(latencies[name])
        p50, p99 = took[len(took) // 2], took[int(len(took) * 0.99)]
        ratio = f"{best / median(every):.1f}×"
        table.add_row(name, f"{median(every):,.0f}", f"{p50 * 1000:.2f} ms", f"{p99 * 1000:.2f} ms", ratio)
    console.print(table)


if __name__ == "__main__":
    main()
