"""A client that sends commands, or the processes of the bank; each may be killed at any moment.

commands_worker.py client ROOT NAME      notes each request before it is sent, and what came of it
commands_worker.py processes ROOT NAME   debits and credits what was asked for
commands_worker.py steps ROOT COUNT      a few transfers; kills itself at the COUNT-th append or commit
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import uuid
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import headwater
from headwater.errors import Rejected
from headwater.log.conditional import ConditionalProducer
from headwater.sourcing import unique
from headwater.sourcing.event_feed import DeciderFeed

sys.path.append(str(Path(__file__).parents[3] / "examples" / "bank"))
import bank

ACCOUNTS = [f"account-{number}" for number in range(10)]
NAMES = [f"name-{number}" for number in range(40)]
USERNAMES = unique("username")


def requests_of(note: Path) -> dict[str, dict[str, Any]]:
    """Return what a client has noted, by request id; a torn last line was never noted."""
    found: dict[str, dict[str, Any]] = {}
    for line in note.read_text().split("\n")[:-1] if note.exists() else []:
        if line:
            told = json.loads(line)
            found.setdefault(told["id"], {}).update(told)
    return found


def client(root: Path, name: str) -> None:
    note, chance = root / f"{name}.requests", random.Random()
    with ExitStack() as stack:
        log = stack.enter_context(headwater.open(f"file:{root / 'log'}"))
        accounts = stack.enter_context(bank.account.open(log))
        transfers = stack.enter_context(bank.transfer.open(log))
        names = stack.enter_context(USERNAMES.open(log))
        journal = stack.enter_context(open(note, "a"))
        journal.write("\n")  # a predecessor may have been killed within a line

        def write(**told: Any) -> None:
            journal.write(json.dumps(told) + "\n")
            journal.flush()

        def send(id: str, kind: str, key: str, cents: int, target: str) -> None:
            try:
                if kind == "deposit":
                    accounts.execute(key, bank.Deposit(cents), request_id=id)
                elif kind == "transfer":
                    transfers.execute(id, bank.RequestTransfer(key, target, cents), request_id=id)
                else:
                    names.claim(key, owner=id, request_id=id)
                write(id=id, result="accepted")
            except Rejected:
                write(id=id, result="rejected")

        for told in requests_of(note).values():
            if "result" not in told:
                send(told["id"], told["kind"], told["key"], told["cents"], told["target"])
        while True:
            source, target = chance.sample(ACCOUNTS, 2)
            kind = chance.choice(["deposit", "deposit", "transfer", "transfer", "transfer", "claim"])
            key = chance.choice(NAMES) if kind == "claim" else source
            told = {
                "id": uuid.uuid4().hex,
                "kind": kind,
                "key": key,
                "cents": chance.randint(1, 50),
                "target": target,
            }
            write(**told)
            send(**told)


def processes(root: Path, name: str) -> None:
    with headwater.open(f"file:{root / 'log'}") as log, ExitStack() as stack:
        running = [stack.enter_context(each.open(log)) for each in (bank.debits, bank.credits)]
        while True:
            for each in running:
                each.step(0.05)


def steps(root: Path, count: str) -> None:
    """Do a few transfers, and die before or after one of the steps."""
    left = [int(count)]

    def dying(method: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*arguments: Any, **named: Any) -> Any:
            _count(left)
            made = method(*arguments, **named)
            _count(left)
            return made

        return wrapped

    ConditionalProducer.append = dying(ConditionalProducer.append)  # type: ignore[method-assign]
    DeciderFeed.commit = dying(DeciderFeed.commit)  # type: ignore[method-assign]
    with headwater.open(f"file:{root / 'log'}") as log:
        with bank.account.open(log) as accounts, bank.transfer.open(log) as transfers:
            accounts.execute("ada", bank.Deposit(100), request_id="deposit")
            transfers.execute("t-1", bank.RequestTransfer("ada", "bob", 30), request_id="first")
            transfers.execute("t-2", bank.RequestTransfer("ada", "eve", 90), request_id="second")
        bank.settle(log)
    print("done", flush=True)


def _count(left: list[int]) -> None:
    left[0] -= 1
    if left[0] == 0:
        os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    role, root, argument = sys.argv[1:]
    {"client": client, "processes": processes, "steps": steps}[role](Path(root), argument)
