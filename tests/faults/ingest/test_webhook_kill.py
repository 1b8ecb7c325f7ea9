"""A webhook that is killed while a sender delivers, and delivers again: each delivery is one event."""

from __future__ import annotations

import http.client
import os
import random
import socket
import time
from pathlib import Path

import pytest

import headwater
from faults.killed_worker import killed_after
from webhook_kit import SECRET, post, signed

WORKER = Path(__file__).with_name("webhook_worker.py")
KILLS = int(os.environ.get("FAULT_KILLS", "3"))
PATIENCE = 20.0


@pytest.mark.faults
@pytest.mark.timeout(60 + 30 * KILLS)
def test_a_delivery_that_is_repeated_around_a_kill_makes_one_event(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOOK_SECRET", SECRET)
    url, chance, port = f"file:{tmp_path / 'log'}", random.Random(3), _free_port()
    address, answered, number = f"http://127.0.0.1:{port}/hook", 0, 0
    for _ in range(KILLS):
        with killed_after(chance, [WORKER, url, str(port)]) as is_due:
            waited = time.monotonic() + PATIENCE
            begun = answered
            # Until it is due, but not before something was answered: on a busy machine it starts slowly.
            while not is_due() or (answered == begun and time.monotonic() < waited):
                if _deliver(address, number):
                    answered += 1
                    number += 1
                    _deliver(address, chance.randrange(number))  # somebody repeats an old one
    with killed_after(chance, [WORKER, url, str(port)]):
        end = time.monotonic() + PATIENCE
        while not _deliver(address, number) and time.monotonic() < end:  # the one that a kill interrupted
            time.sleep(0.05)
    with headwater.open(url) as log:
        stored = [id for batch in log.read("hooks") for id in batch.column("delivery").to_pylist()]
    assert sorted(stored, key=int) == [str(each) for each in range(number + 1)]
    print(f"{KILLS} kills, {len(stored)} events")


def _deliver(address: str, number: int) -> bool:
    body = b'{"n": %d}' % number
    try:
        return post(address, body, signed(str(number), body)).status == 200
    except (OSError, http.client.HTTPException):
        time.sleep(0.02)
        return False


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
