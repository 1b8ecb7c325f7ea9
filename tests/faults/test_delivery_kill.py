"""Deliveries under ``kill -9`` of the process that sends them, to a receiver that fails as it likes."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from delivery_kit import CUT, Answer, Request, receiving
from faults.delivery_worker import KEYS, ROWS

pytestmark = pytest.mark.faults
KILLS = int(os.environ.get("FAULT_KILLS", "2"))
SEED = int(os.environ.get("FAULT_SEED", "7"))
WORKER = Path(__file__).with_name("delivery_worker.py")


@pytest.mark.timeout(3600)
def test_every_delivery_arrives_in_the_order_of_its_key_however_often_the_sender_dies(tmp_path: Path) -> None:
    chance, batches = random.Random(SEED), 30 * KILLS
    with receiving() as receiver:
        receiver.answer = lambda request: Answer(chance.choice([204, 204, 204, 503, 429, CUT]))
        command = [sys.executable, WORKER, tmp_path, receiver.url, str(batches)]
        for _ in range(KILLS):
            seen = len(receiver.requests)
            with subprocess.Popen(command) as process:
                while len(receiver.requests) == seen and process.poll() is None:
                    time.sleep(0.005)
                time.sleep(chance.uniform(0.0, 0.4))
                process.kill()
        receiver.answer = lambda request: Answer()
        subprocess.run(command, check=True, timeout=200)
        arrived = receiver.arrived()
    first = dict[str, Request]()
    for request in arrived:
        assert first.setdefault(request.id, request).body == request.body
    numbers = [request.message["data"]["n"] for request in first.values()]
    assert sorted(numbers) == list(range(batches * ROWS))
    for key in range(KEYS):
        assert (ours := [each for each in numbers if each % KEYS == key]) == sorted(ours)
    print(f"{KILLS} kills, {len(numbers):,} deliveries, {len(arrived) - len(numbers)} of them twice")
