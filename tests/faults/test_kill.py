"""Producers and consumers under random ``kill -9``: nothing acknowledged is lost or stored twice."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path

import pytest

from faults.worker import acknowledged, open_log

SECONDS = float(os.environ.get("FAULT_SECONDS", "15"))
PARTITIONS = 6
WORKER = Path(__file__).with_name("worker.py")


class Workers:
    """Processes that are killed and started again."""

    def __init__(self, root: Path):
        self.root = root
        self.running: dict[str, subprocess.Popen[bytes]] = {}
        self.kills = 0

    def start(self, name: str) -> None:
        role = name.split("-")[0]
        errors = open(self.root / f"{name}.err", "ab")
        command = [sys.executable, str(WORKER), role, str(self.root), name]
        self.running[name] = subprocess.Popen(command, stderr=errors)
        errors.close()

    def kill(self, name: str) -> None:
        process = self.running.pop(name)
        process.send_signal(signal.SIGKILL)
        process.wait()
        self.kills += 1

    def kill_all(self, role: str) -> None:
        for name in [n for n in self.running if n.startswith(role)]:
            self.kill(name)


@pytest.mark.faults
@pytest.mark.timeout(SECONDS + 300)
def test_every_acknowledged_event_is_read_once_stored_and_in_order(tmp_path: Path) -> None:
    with open_log(tmp_path) as log:
        log.create_topic("events", "who STRING, n BIGINT, key STRING", key="key", partitions=PARTITIONS)
    workers = Workers(tmp_path)
    names = [f"{role}-{i}" for role in ("producer", "consumer") for i in range(4)]
    try:
        _torment(workers, names)
        _await_producers(tmp_path, names)
        workers.kill_all("producer")
        _drain(tmp_path)
    finally:
        workers.kill_all("producer")
        workers.kill_all("consumer")
    stored = _check_log(tmp_path)
    _check_consumers(tmp_path)
    print(f"{workers.kills} kills, {stored} events")
    for name in names:
        assert (tmp_path / f"{name}.err").read_text() == ""


def _torment(workers: Workers, names: list[str]) -> None:
    chance = random.Random(7)
    for name in names:
        workers.start(name)
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        time.sleep(chance.uniform(0.2, 0.8))
        victim = chance.choice(names)
        workers.kill(victim)
        workers.start(victim)


def _await_producers(root: Path, names: list[str]) -> None:
    """Wait until every producer has had something acknowledged: on a busy machine they start slowly."""
    notes = [root / f"{name}.acked" for name in names if name.startswith("producer")]
    deadline = time.monotonic() + 120
    while not all(map(acknowledged, notes)) and time.monotonic() < deadline:
        time.sleep(0.2)


def _drain(root: Path) -> None:
    """Wait until the group has committed everything."""
    deadline = time.monotonic() + 120
    with open_log(root) as log:
        while sum(lag.records for lag in log.lag("readers")) and time.monotonic() < deadline:
            time.sleep(0.2)
        assert [lag.records for lag in log.lag("readers")] == [0] * PARTITIONS


def _check_log(root: Path) -> int:
    found: dict[str, set[int]] = defaultdict(set)
    with open_log(root) as log:
        for partition in range(PARTITIONS):
            last: dict[str, int] = defaultdict(lambda: -1)
            for batch in log.read("events", partition):
                for each in batch.select(["who", "n"]).to_pylist():
                    assert each["n"] > last[each["who"]], "stored twice, or out of order"
                    last[each["who"]] = each["n"]
                    found[each["who"]].add(each["n"])
        assert log.verify().findings == ()
    for note in root.glob("*.acked"):
        acked = acknowledged(note)
        assert acked > 0
        assert set(range(acked)) <= found[note.stem], "an acknowledged event is missing"
    return sum(map(len, found.values()))


def _check_consumers(root: Path) -> None:
    seen: dict[int, set[int]] = defaultdict(set)
    for note in root.glob("*.seen"):
        for line in note.read_text().split("\n")[:-1]:
            partition, _, offset = line.partition(" ")
            if offset.isdigit():  # a kill may have torn a line in two
                seen[int(partition)].add(int(offset))
    with open_log(root) as log:
        ends = log.resolve("events", "latest").offsets
    assert {partition: len(offsets) for partition, offsets in seen.items()} == ends
