"""A queue as a way in, under ``kill -9``: each message is stored once, or dead with a reason, and none lost.

What is at stake is the moment between a record that is durable and its message that is acknowledged: whoever
comes next must find that it was stored.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

import headwater
from faults.ingest.queue_worker import FEW, GROUP, TARGET, TOPIC, URL
from faults.killed_worker import killed_after
from headwater import Log
from headwater.log.embedded.queue.delivery import UNACKNOWLEDGED

pytestmark = pytest.mark.faults
KILLS = int(os.environ.get("FAULT_KILLS", "3"))
SEED = int(os.environ.get("FAULT_SEED", "7"))
WORKER = Path(__file__).with_name("queue_worker.py")
MISFIT = 50_000
"""Added to a number, it does not fit the column of the topic that messages go to."""
RARE = 499
"""One message in so many does not fit: its batch is stored in parts then."""
DELIVERIES = headwater.QueueSettings().max_deliveries


def made(url: str) -> None:
    """Make the queue, and a topic into which not all of its messages fit."""
    with headwater.open(url) as log:
        log.create_topic(TOPIC, "to STRING NOT NULL, n BIGINT", key="to", partitions=2)
        log.create_topic(TARGET, "to STRING NOT NULL, n SMALLINT", key="to", partitions=3)
        log.queue(TOPIC, GROUP).close()


def send(log: Log, numbers: range) -> None:
    rows = [{"to": f"k{n % 7}", "n": n if n % RARE else MISFIT + n} for n in numbers]
    with log.producer(TOPIC) as producer:
        producer.send_batch(rows)


def check(log: Log, count: int) -> int:
    """Each message is stored or dead, once, and none is left; return how many died of their deliveries."""
    stored = [n for batch in log.read(TARGET) for n in batch.column("n").to_pylist()]
    with log.queue(TOPIC, GROUP) as queue:
        dead, depth = {each.value["n"]: each.reason for each in queue.dead()}, queue.status().depth
        assert (depth, len(dead)) == (0, queue.status().dead)
    assert sorted([*stored, *dead]) == sorted(n if n % RARE else MISFIT + n for n in range(count))
    fitting = [reason for n, reason in dead.items() if n < MISFIT]
    assert set(fitting) <= {UNACKNOWLEDGED}
    assert all("does not fit" in reason or reason == UNACKNOWLEDGED for reason in dead.values())
    return len(fitting)


def moved(url: str, count: int, *steps: str) -> subprocess.CompletedProcess[bytes]:
    """Let a worker move messages until it has moved all, or has died at a step."""
    command = [sys.executable, WORKER, url, str(count), *steps]
    return subprocess.run(command, stdout=subprocess.PIPE, timeout=120)


@pytest.mark.timeout(60 + 30 * KILLS)
def test_every_message_is_stored_once_or_dead_however_often_the_process_dies(tmp_path: Path) -> None:
    url, chance, sent = f"file:{tmp_path / 'log'}", random.Random(SEED), 0
    made(url)
    arguments = ["-m", "headwater", "ingest", "start", URL, "--topic", TARGET, "--log", url]
    with headwater.open(url) as log:
        for _ in range(KILLS):
            with killed_after(chance, arguments) as is_due:
                begun = log.resolve(TARGET, "latest")
                until = time.monotonic() + 60
                # Not before it has stored something: on a busy machine it starts slowly.
                while not is_due() or (log.resolve(TARGET, "latest") == begun and time.monotonic() < until):
                    count = chance.choice([1, 20, 300]) if sent < 5_000 else 1
                    send(log, range(sent, sent + count))
                    sent += count
                    time.sleep(chance.uniform(0.0, 0.02))
        assert moved(url, 0).stdout == b"done\n"
        dead = check(log, sent)
    print(f"{KILLS} kills, {sent:,} messages, {dead} of them delivered too often")


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_every_message_is_stored_once_or_dead_after_a_kill_at_each_step(tmp_path: Path) -> None:
    count, points = 3 * FEW, 0
    for point in range(1, 200):
        url = f"file:{tmp_path / str(point)}"
        made(url)
        with headwater.open(url) as log:
            send(log, range(count))
            first = moved(url, point)
            assert moved(url, 0).stdout == b"done\n"
            assert check(log, count) == 0
        if first.stdout == b"done\n":
            break
        points += 1
    assert points > 2
    print(f"killed at {points} moments, right after each")


def test_a_message_that_is_stored_does_not_die_of_being_delivered_too_often(tmp_path: Path) -> None:
    url = f"file:{tmp_path / 'log'}"
    made(url)
    with headwater.open(url) as log:
        send(log, range(FEW))
        for _ in range(DELIVERIES - 1):
            assert moved(url, 2, "receive").returncode == -9  # received, and nothing done
        assert moved(url, 1, "acknowledge").returncode == -9  # stored, and not acknowledged
        assert moved(url, 0).stdout == b"done\n"
        assert check(log, FEW) == 0
