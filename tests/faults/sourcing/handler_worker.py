"""A pipeline that decides the commands of accounts, or a client of it; each may be killed at any moment.

handler_worker.py runner ROOT COUNT   decides; kills itself at the COUNT-th point of a commit, if it is not 0
handler_worker.py finish ROOT STOP    decides until a file STOP is there, then what is left, and verifies
handler_worker.py client ROOT NAME    notes each request before it is sent, and what came of it
"""

from __future__ import annotations

import json
import random
import sys
import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import headwater
from account_kit import Deposit, Withdraw, account, handling_bank
from faults.pipeline_worker import die_at
from faults.sourcing.commands_worker import requests_of
from headwater.engine.proof.verify import verify
from headwater.engine.runner import Runner
from headwater.errors import Behind, Rejected, UnknownTopic
from headwater.sourcing.command_client import CommandClient
from headwater.sourcing.command_schema import Sending

KEYS = [f"account-{number}" for number in range(5)]
THREADS = 4
REPLY_SECONDS = 2.0
"""After which a command is sent again: sooner than a runner that was killed is back."""


def log_url(root: Path) -> str:
    return f"file:{root / 'log'}"


class Client:
    """Sends commands and questions; a command without a reply is sent again until there is one."""

    def __init__(self, root: Path, name: str, client: CommandClient):
        note = root / f"{name}.requests"
        self._client, self._chance, self._lock = client, random.Random(), threading.Lock()
        self.unanswered = [told for told in requests_of(note).values() if "result" not in told]
        self._journal = open(note, "a")
        self._journal.write("\n")  # a predecessor may have been killed within a line

    def run(self) -> None:
        while True:
            kind = self._chance.choice(["deposit", "deposit", "withdraw", "withdraw", "question"])
            cents = self._chance.randint(1, 30)
            told = {"id": uuid.uuid4().hex, "kind": kind, "key": self._chance.choice(KEYS), "cents": cents}
            self._write(**told)
            self.send(**told)

    def send(self, id: str, kind: str, key: str, cents: int) -> None:
        while True:
            try:
                return self._write(id=id, **self._result(id, kind, key, cents))
            except Behind:
                continue

    def _result(self, id: str, kind: str, key: str, cents: int) -> dict[str, Any]:
        if kind == "question":
            answer = self._client.ask("balance", key, timeout=REPLY_SECONDS, asked=id)
            return {"result": "answered", "balance": answer["cents"]}
        command = Deposit(cents) if kind == "deposit" else Withdraw(cents)
        try:
            reply = self._client.execute(key, command, request_id=id, timeout=REPLY_SECONDS)
        except Rejected:
            return {"result": "rejected"}
        return {
            "result": "accepted",
            "event_count": reply.event_count,
            "moved": [each.cents for each in reply.events],
        }

    def _write(self, **told: Any) -> None:
        with self._lock:
            self._journal.write(json.dumps(told) + "\n")
            self._journal.flush()


def run_client(root: Path, name: str) -> None:
    with _connected(root) as connected, ThreadPoolExecutor(THREADS) as pool:
        client = Client(root, name, connected)
        for told in client.unanswered:
            pool.submit(client.send, **told)
        for done in [pool.submit(client.run) for _ in range(THREADS)]:
            done.result()


def _connected(root: Path) -> CommandClient:
    while True:
        try:
            return account().connect(handling_bank(log_url(root)))
        except UnknownTopic:  # the runner has not made its topics yet
            time.sleep(0.1)


def run_pipeline(root: Path, count: str) -> None:
    with Runner(handling_bank(log_url(root))) as runner:
        if int(count):
            die_at(int(count))
        runner.run(lambda: None)
        raise SystemExit("; ".join(str(each.error) for each in runner.nodes.values()))


def finish(root: Path, stop: str) -> None:
    with Runner(handling_bank(log_url(root))) as runner:
        runner.run(lambda: runner.stop() if (root / stop).exists() else None)
    with headwater.open(log_url(root)) as log, log.producer("commands") as producer:
        for key in KEYS:
            sending = Sending(key, f"last-{key}", datetime.now(UTC))
            producer.send(account().command_schema.question("balance", {"asked": f"last-{key}"}, sending))
    with Runner(handling_bank(log_url(root))) as runner:
        runner.catch_up()
        assert all(verify(runner, name).ok for name in runner.nodes)


if __name__ == "__main__":
    role, directory, argument = sys.argv[1:]
    {"client": run_client, "runner": run_pipeline, "finish": finish}[role](Path(directory), argument)
