"""Commands under ``kill -9`` of clients and processes: each applied once, none lost, money conserved."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import headwater
from faults.sourcing import commands_worker as worker
from headwater import Log

bank = worker.bank
KILLS = int(os.environ.get("FAULT_KILLS", "6"))
SEED = int(os.environ.get("FAULT_SEED", "7"))
WORKER = Path(__file__).with_name("commands_worker.py")
CLIENTS = 8


def started(role: str, root: Path, argument: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, WORKER, role, root, argument], stdout=subprocess.DEVNULL)


def ended(root: Path, argument: str) -> bytes:
    """Return what a worker has printed that does the steps, when it has ended or been killed."""
    return subprocess.run([sys.executable, WORKER, "steps", root, argument], stdout=subprocess.PIPE).stdout


def rows_of(log: Log, topic: str) -> list[dict[str, Any]]:
    return [row for batch in log.read(topic, meta=True) for row in batch.to_pylist()]


@pytest.mark.faults
@pytest.mark.timeout(3600)
def test_no_command_is_lost_or_applied_twice(tmp_path: Path) -> None:
    chance = random.Random(SEED)
    with headwater.open(f"file:{tmp_path / 'log'}") as log:
        bank.account.open(log).close()
        bank.transfer.open(log).close()
    roles = [("client", f"client-{n}") for n in range(CLIENTS)] + [
        ("processes", f"processes-{n}") for n in range(2)
    ]
    running = {role: started(role[0], tmp_path, role[1]) for role in roles}
    try:
        _wait_for_work(tmp_path)
        for _ in range(KILLS):
            time.sleep(chance.uniform(0.05, 0.6))
            victim = chance.choice(roles)
            running[victim].kill()
            assert running[victim].wait() == -9, "it had ended by itself"
            running[victim] = started(victim[0], tmp_path, victim[1])
        time.sleep(1)
    finally:
        for each in running.values():
            each.kill()
        for each in running.values():
            each.wait()
    noted = {id: told for n in range(CLIENTS) for id, told in _noted(tmp_path, n).items()}
    with headwater.open(f"file:{tmp_path / 'log'}") as log:
        bank.settle(log)
        _check_requests(log, noted)
        _check_names(log, noted)
        books = bank.audit(log)
        assert books.in_flight == {}
        deposits = sum(row["cents"] for row in rows_of(log, "account") if row["event"] == "Deposited")
        assert sum(books.balances.values()) == deposits
        accepted = sum(told.get("result") == "accepted" for told in noted.values())
        print(f"{KILLS} kills, {len(noted):,} requests, {accepted:,} accepted, {deposits:,} cents, all there")


def _wait_for_work(root: Path) -> None:
    deadline = time.monotonic() + 120
    while not all(_noted(root, number) for number in range(CLIENTS)):
        assert time.monotonic() < deadline
        time.sleep(0.1)


def _noted(root: Path, number: int) -> dict[str, dict[str, Any]]:
    return worker.requests_of(root / f"client-{number}.requests")


def _check_requests(log: Log, noted: dict[str, dict[str, Any]]) -> None:
    every = [row for topic in ("account", "transfer", "username.claims") for row in rows_of(log, topic)]
    times = Counter(row["request_id"] for row in every if row["request_id"] is not None)
    assert [id for id, count in times.items() if count > 1] == [], "a command was applied twice"
    accepted = {id for id, told in noted.items() if told.get("result") == "accepted"}
    assert sorted(accepted - times.keys()) == [], "an accepted event is lost"
    rejected = {id for id, told in noted.items() if told.get("result") == "rejected"}
    assert rejected & times.keys() == set(), "a rejected command has left an event"


def _check_names(log: Log, noted: dict[str, dict[str, Any]]) -> None:
    claims = [row for row in rows_of(log, "username.claims") if row["event"] == "Claimed"]
    assert [key for key, count in Counter(row["key"] for row in claims).items() if count > 1] == []
    owners = {row["key"]: row["owner"] for row in claims}
    for id, told in noted.items():
        if told["kind"] == "claim" and told.get("result") == "accepted":
            assert owners[told["key"]] == id, "a name that was given has another owner"


@pytest.mark.faults
@pytest.mark.long
@pytest.mark.timeout(1200)
def test_balances_are_right_after_a_kill_at_each_step(tmp_path: Path) -> None:
    every, points = range(1, 200), 0
    for count in every:
        root = tmp_path / str(count)
        told = ended(root, str(count))
        with headwater.open(f"file:{root / 'log'}") as log:
            if "account" in [topic.name for topic in log.topics()]:
                bank.audit(log)  # also before anybody has gone on with it
        assert ended(root, "0") == b"done\n"
        with headwater.open(f"file:{root / 'log'}") as log:
            books = bank.audit(log)
            assert (books.balances, books.in_flight) == ({"ada": 70, "bob": 30}, {})
            with bank.transfer.open(log) as transfers:
                assert transfers.state("t-2") == "refused"
        if told == b"done\n":
            break
        points += 1
    assert points > 2
    print(f"killed at {points} steps, right after each")
