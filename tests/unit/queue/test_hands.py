"""Threads for a user's function: as many as asked for, and none that keeps a process alive."""

from __future__ import annotations

import subprocess
import sys
import threading

from headwater.queue.hands import DaemonHands


def test_calls_are_made_together_and_by_no_more_threads_than_asked_for() -> None:
    together, threads = threading.Barrier(3), set[int]()

    def call() -> None:
        threads.add(threading.get_ident())
        together.wait(20)

    with DaemonHands(2) as hands:
        for _ in range(2):
            for _ in range(2):
                hands.submit(call)
            together.wait(20)
    assert len(threads) == 2


def test_a_call_that_never_returns_does_not_keep_the_process_alive() -> None:
    program = """
import threading
from headwater.queue.hands import DaemonHands
with DaemonHands(1) as hands:
    hands.submit(threading.Event().wait)
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
