"""A file that is followed, and rotated, while the follower is killed: each line is stored once."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import headwater
from faults.killed_worker import killed_after
from headwater import ingest

WORKER = Path(__file__).with_name("lines_worker.py")
KILLS = int(os.environ.get("FAULT_KILLS", "3"))


@pytest.mark.faults
@pytest.mark.timeout(60 + 30 * KILLS)
def test_a_killed_follower_neither_loses_nor_repeats_a_line(tmp_path: Path) -> None:
    url, path, chance = f"file:{tmp_path / 'log'}", tmp_path / "app.log", random.Random(5)
    with headwater.open(url) as log:
        log.create_topic("lines", "n BIGINT", partitions=3)
        path.touch()
        with ingest.open(f"file:{path}", "lines", log=log) as begun:  # and nothing is passed over
            begun.run(threading.Event())
    written = 0
    for _ in range(KILLS):
        with killed_after(chance, [WORKER, url, path]) as is_due:
            while not is_due():
                written = _write(path, written, chance)
                time.sleep(chance.uniform(0.0, 0.02))
    with subprocess.Popen([sys.executable, WORKER, url, path]) as last:
        try:
            _await(url, written)
        finally:
            last.kill()
    with headwater.open(url) as log:
        stored = [number for batch in log.read("lines") for number in batch.column("n").to_pylist()]
        assert sorted(stored) == [number for number in range(written) if number % 97]
        dead = [text for batch in log.read("lines.dead") for text in batch.column("text").to_pylist()]
        assert dead == [f"odd {number}" for number in range(0, written, 97)]
    print(f"{KILLS} kills, {written} lines")


def _write(path: Path, written: int, chance: random.Random) -> int:
    """Write lines, some of which do not fit, and rotate the file now and then."""
    count = chance.choice([1, 20, 300])
    with path.open("a") as end:
        for number in range(written, written + count):
            end.write(f'{{"n": {number}}}\n' if number % 97 else f"odd {number}\n")
    if chance.random() < 0.1:
        rotated = path.with_name(f"app.log.{written + count}")
        if chance.random() < 0.5:
            path.rename(rotated)
            path.touch()
        else:
            shutil.copy(path, rotated)
            os.truncate(path, 0)
    return written + count


def _await(url: str, written: int) -> None:
    expected = sum(1 for number in range(written) if number % 97)
    deadline = time.monotonic() + 120 + written / 1000  # pieces are small here, and the machine may be busy
    with headwater.open(url) as log:
        while sum(log.resolve("lines", "latest").offsets.values()) < expected and time.monotonic() < deadline:
            time.sleep(0.1)
        while time.monotonic() < deadline:
            if sum(log.resolve("lines.dead", "latest").offsets.values()) >= -(-written // 97):
                break
            time.sleep(0.1)
