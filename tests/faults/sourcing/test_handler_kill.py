"""A decider by the log under ``kill -9`` of runner and clients: each command carried out once, in its place.

Clients repeat what they got no reply to, so commands come several times, from before and after each kill.
What is right is told by a loop over the topic of commands, in which nothing ever dies.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import headwater
from account_kit import account
from faults.sourcing.commands_worker import requests_of
from headwater import Log

KILLS = int(os.environ.get("FAULT_KILLS", "1"))
SEED = int(os.environ.get("FAULT_SEED", "7"))
WORKER = Path(__file__).with_name("handler_worker.py")
CLIENTS = [f"client-{number}" for number in range(3)]
REPLIES = 50
"""How many are heard before anything is killed."""


@dataclass
class Bank:
    """What the commands of a topic lead to, decided one after the other."""

    balances: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    counts: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    carried_out: dict[tuple[str, str], tuple[int, int]] = field(default_factory=dict)
    """The count of events and the cents of each command that has led to an event."""
    answers: dict[str, int] = field(default_factory=dict)
    replies: dict[str, list[tuple[Any, ...]]] = field(default_factory=lambda: defaultdict(list))
    events: dict[str, list[tuple[Any, ...]]] = field(default_factory=lambda: defaultdict(list))

    def decide(self, row: dict[str, Any]) -> None:
        key, id = row["key"], row["request_id"]
        self.replies[key].append((id, *self._reply(key, id, row)))

    def _reply(self, key: str, id: str, row: dict[str, Any]) -> tuple[Any, ...]:
        if row["question"] is not None:
            asked = json.loads(row["question"])["asked"]
            self.answers[asked] = self.balances[key]
            return True, self.counts[key], [], {"cents": self.balances[key], "asked": asked}, False
        repeated = (key, id) in self.carried_out
        if not repeated:
            if row["command"] == "Withdraw" and row["cents"] > self.balances[key]:
                return False, self.counts[key], [], None, False
            event = {"Deposit": "Deposited", "Withdraw": "Withdrawn"}[row["command"]]
            self.balances[key] += row["cents"] * (1 if event == "Deposited" else -1)
            self.counts[key] += 1
            self.carried_out[key, id] = self.counts[key], row["cents"]
            self.events[key].append((event, row["cents"], id))
        count, cents = self.carried_out[key, id]
        return True, count, [cents], None, repeated


@pytest.mark.faults
@pytest.mark.timeout(400 + 120 * KILLS)
def test_every_command_is_decided_once_and_in_order_however_often_runner_and_clients_die(
    tmp_path: Path,
) -> None:
    chance, processes, client_kills = random.Random(SEED), dict[str, subprocess.Popen[bytes]](), 0
    with headwater.open(f"file:{tmp_path / 'log'}") as log:
        ddl = account().command_schema.ddl
        log.create_topic("commands", ddl, key="key", event_time="sent_at", partitions=2)
        try:
            for name in CLIENTS:
                processes[name] = _started("client", tmp_path, name)
            for number in range(KILLS):
                point = chance.randint(1, 40) if number % 2 else 0  # of a commit, or any moment
                runner = processes["runner"] = _started("runner", tmp_path, str(point))
                _await_replies(tmp_path, runner)
                for name in chance.sample(CLIENTS, 2):
                    _kill(processes[name])
                    processes[name] = _started("client", tmp_path, name)
                    client_kills += 1
                    time.sleep(chance.uniform(0.0, 1.0))
                if point:
                    with suppress(subprocess.TimeoutExpired):
                        runner.wait(30)
                _kill(runner)
            processes["runner"] = _started("finish", tmp_path, "stop")
            _await_replies(tmp_path, processes["runner"])
            for name in CLIENTS:
                _kill(processes.pop(name))
            (tmp_path / "stop").touch()
            assert processes["runner"].wait(300) == 0, _told(tmp_path)
        finally:
            for each in processes.values():
                _kill(each, expected=False)
        bank = _checked(log, tmp_path)
    sent, heard = sum(map(len, bank.replies.values())), _heard(tmp_path)
    print(
        f"{KILLS} kills of the runner, {client_kills} of clients; {sent:,} commands and questions sent, "
        f"{len(bank.carried_out):,} carried out, {len(bank.answers):,} questions, {heard:,} replies heard"
    )


def _checked(log: Log, root: Path) -> Bank:
    bank = Bank()
    for row in sorted(_rows(log, "commands"), key=lambda row: (row["_partition"], row["_offset"])):
        bank.decide(row)
    replies, events = defaultdict(list), defaultdict(list)
    for row in _rows(log, "bank.account_replies"):
        cents = [each["cents"] for each in row["events"] or ()]
        answer = None if row["answer"] is None else json.loads(row["answer"])
        told = (row["request_id"], row["accepted"], row["event_count"], cents, answer, row["repeated"])
        replies[row["key"]].append(told)
    for row in _rows(log, "bank.account"):
        events[row["key"]].append((row["event"], row["cents"], row["request_id"]))
    assert dict(events) == dict(bank.events)
    assert dict(replies) == dict(bank.replies)
    for key, every in events.items():
        balance = 0
        for event, cents, _ in every:
            balance += cents if event == "Deposited" else -cents
            assert balance >= 0, "the account is overdrawn"
        assert balance == bank.balances[key] == bank.answers[f"last-{key}"]
    _check_notes(bank, root)
    return bank


def _check_notes(bank: Bank, root: Path) -> None:
    """What clients were told is what has happened."""
    for name in CLIENTS:
        for id, told in _noted(root, name).items():
            carried_out = bank.carried_out.get((told["key"], id))
            if told.get("result") == "accepted":
                assert carried_out == (told["event_count"], *told["moved"]), "an accepted command is lost"
            elif told.get("result") == "rejected":
                assert carried_out is None, "a command that was told to be rejected was carried out"
            elif told.get("result") == "answered":
                assert bank.answers[id] == told["balance"], "an answer is not that of its place"


def _started(role: str, root: Path, argument: str) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, str(WORKER), role, str(root), argument]
    with open(root / f"{role}.log", "ab") as file:
        return subprocess.Popen(command, stdout=file, stderr=file, start_new_session=True, env=environment)


def _kill(process: subprocess.Popen[bytes], expected: bool = True) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL or not expected, "it had ended by itself"


def _await_replies(root: Path, runner: subprocess.Popen[bytes]) -> None:
    """Wait until clients have heard some more replies, or a runner has died at its point."""
    goal, deadline = _heard(root) + REPLIES, time.monotonic() + 180
    while _heard(root) < goal and runner.poll() is None:
        assert time.monotonic() < deadline, "no replies"
        time.sleep(0.1)


def _heard(root: Path) -> int:
    return sum("result" in told for name in CLIENTS for told in _noted(root, name).values())


def _noted(root: Path, name: str) -> dict[str, dict[str, Any]]:
    return requests_of(root / f"{name}.requests")


def _rows(log: Log, topic: str) -> list[dict[str, Any]]:
    return [row for batch in log.read(topic, meta=True) for row in batch.to_pylist()]


def _told(root: Path) -> str:
    return (root / "finish.log").read_text()[-3000:]
