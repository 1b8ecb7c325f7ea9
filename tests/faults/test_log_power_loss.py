"""Producers whose machine loses power, again and again: nothing acknowledged is lost or stored twice."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from faults.test_kill import PARTITIONS, SECONDS, WORKER, _check_log
from faults.worker import acknowledged, open_log
from power_loss import Disk
from unsynced import restarted

NAMES = [f"producer-{number}" for number in range(3)]
LOSSES = max(2, int(SECONDS // 8))


@pytest.mark.faults
@pytest.mark.timeout(LOSSES * 60 + 200)
def test_every_acknowledged_event_is_there_after_power_losses(tmp_path: Path) -> None:
    root = tmp_path / "root-0"
    with open_log(root) as log:
        log.create_topic("events", "who STRING, n BIGINT, key STRING", key="key", partitions=PARTITIONS)
    disk = Disk(root, ["log/topics"], "lock")
    for number in range(LOSSES):
        _produce(disk, tmp_path / "errors")
        disk = disk.after_loss(tmp_path / f"root-{number + 1}", number)
        for partition in range(PARTITIONS):
            restarted(disk.root / "log/topics/events" / str(partition))
        stored = _check_log(disk.root)
        assert (tmp_path / "errors").read_text() == ""
    print(f"{LOSSES} power losses, {stored} events")


def _produce(disk: Disk, errors: Path) -> None:
    """Let producers run until each has had something more acknowledged, and a little longer."""
    before = [acknowledged(disk.root / f"{name}.acked") for name in NAMES]
    running = [_start(disk, name, errors) for name in NAMES]
    try:
        deadline = time.monotonic() + 50
        while not _ahead(disk, before) and time.monotonic() < deadline:
            time.sleep(0.1)
        time.sleep(1)
    finally:
        for process in running:
            process.send_signal(signal.SIGKILL)
        for process in running:
            process.wait()


def _ahead(disk: Disk, before: list[int]) -> bool:
    now = [acknowledged(disk.root / f"{name}.acked") for name in NAMES]
    return all(one > other for one, other in zip(now, before, strict=True))


def _start(disk: Disk, name: str, errors: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, str(WORKER), "producer", str(disk.root), name]
    with open(errors, "ab") as file:
        return subprocess.Popen(command, stderr=file, env={**os.environ, **disk.environment()})
