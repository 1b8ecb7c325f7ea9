"""A queue under ``kill -9`` of its workers: every message is done or dead, none lost, keys in their order."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

import headwater
from faults.queues.queue_worker import GROUP, ORDERED, SETTINGS

pytestmark = pytest.mark.faults
KILLS = int(os.environ.get("FAULT_KILLS", "4"))
SEED = int(os.environ.get("FAULT_SEED", "7"))
WORKER = Path(__file__).with_name("queue_worker.py")
WORKERS, KEYS = 3, 20


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("order", ["ordered", "unordered"])
def test_every_message_is_done_or_dead_however_often_workers_die(tmp_path: Path, order: str) -> None:
    chance, notes, count = random.Random(SEED), tmp_path / "notes.txt", 200 + 100 * KILLS
    url = f"file:{tmp_path / 'log'}"
    with headwater.open(url) as log:
        log.create_topic("t", "k STRING NOT NULL, n BIGINT", key="k", partitions=2)
        log.queue("t", GROUP, settings=ORDERED if order == "ordered" else SETTINGS).close()
        command = [sys.executable, WORKER, url, notes, order]
        workers = [subprocess.Popen(command) for _ in range(WORKERS)]
        try:
            with log.producer("t") as producer:
                for kill in range(KILLS):
                    first = kill * count // KILLS
                    rows = range(first, (kill + 1) * count // KILLS)
                    producer.send_batch([{"k": f"k{n % KEYS}", "n": n} for n in rows])
                    producer.flush()
                    _until_begun(notes, first)
                    time.sleep(chance.uniform(0.0, 0.5))
                    place = chance.randrange(WORKERS)
                    workers[place].kill()
                    workers[place].wait()
                    workers[place] = subprocess.Popen(command)
            with log.queue("t", GROUP) as queue:
                _until_empty(queue)
                dead = [each.value["n"] for each in queue.dead()]
        finally:
            for worker in workers:
                worker.kill()
                worker.wait()
    events = [line.split() for line in notes.read_text().splitlines()]
    done = [int(n) for what, n in events if what == "done"]
    assert sorted({*done, *dead}) == list(range(count))
    assert sorted(dead) == [n for n in range(count) if n % 11 == 0]  # each of them once
    if order == "ordered":
        _check_order([(what, int(n)) for what, n in events], set(dead))
    print(f"{KILLS} kills of {WORKERS} workers, {count} messages, {len(done) - len(set(done))} done twice")


def _check_order(events: list[tuple[str, int]], dead: set[int]) -> None:
    """A message is begun when all that came before it with its key were done, or could be dead."""
    done: set[int] = set()
    for what, n in events:
        if what == "begun":
            before = range(n % KEYS, n, KEYS)
            assert all(each in done or each in dead for each in before), n
        else:
            done.add(n)


def _until_begun(notes: Path, many: int) -> None:
    until = time.monotonic() + 120
    while time.monotonic() < until:
        if notes.exists() and notes.read_text().count("begun") > many // 2:
            return
        time.sleep(0.02)
    raise AssertionError("no worker has begun anything")


def _until_empty(queue: headwater.Queue) -> None:
    until = time.monotonic() + 600
    while queue.status().depth:
        assert time.monotonic() < until, queue.status()
        time.sleep(0.1)
