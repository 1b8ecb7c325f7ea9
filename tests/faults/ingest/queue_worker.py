"""Moves messages of a queue into a topic: ``queue_worker.py LOG COUNT [STEP…]``.

It kills itself before or after a step, at the COUNT-th such moment. Steps are ``receive``, ``store``,
``acknowledge`` and ``reject``; all of them, if none is named.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any

import headwater
from headwater import ingest
from headwater.ingest import queue_messages
from headwater.ingest.queue_messages import QueueMessages
from headwater.log import Message
from headwater.log.embedded.queue.queue import EmbeddedQueue

TOPIC, GROUP, TARGET = "emails", "archive", "archived"
URL = f"queue:{TOPIC}?group={GROUP}"
STEPS = {
    "receive": (EmbeddedQueue, "_take"),
    "store": (QueueMessages, "_store"),
    "acknowledge": (queue_messages, "_acknowledge"),
    "reject": (Message, "reject"),
}
FEW = 8
"""Messages of a batch, where the process is to die at one of its steps."""


def die_at(count: int, steps: list[str]) -> None:
    """Let this process kill itself at the ``count``-th moment."""
    left = count

    def reached() -> None:
        nonlocal left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def dying(step: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*arguments: Any, **named: Any) -> Any:
            reached()
            made = step(*arguments, **named)
            reached()
            return made

        return wrapped

    for where, name in (STEPS[step] for step in steps):
        setattr(where, name, dying(getattr(where, name)))


def move(url: str) -> None:
    """Move messages until none is left."""
    with headwater.open(url) as log, ingest.open(URL, TARGET, log=log) as work:
        stop = threading.Event()
        thread = threading.Thread(target=work.run, args=(stop,))
        thread.start()
        with log.queue(TOPIC, GROUP) as queue:
            while queue.status().depth and thread.is_alive():
                stop.wait(0.02)
        stop.set()
        thread.join()
    print("done", flush=True)


if __name__ == "__main__":
    log_url, count, *steps = sys.argv[1:]
    if int(count):
        queue_messages.BATCH = FEW
        die_at(int(count), steps or list(STEPS))
    move(log_url)
