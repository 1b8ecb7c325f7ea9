"""A process that works off a queue until it is killed: it notes what it has begun and what it has done.

Arguments: the log's URL, the file of notes, whether messages are ordered by key. A message in eleven fails.
"""

from __future__ import annotations

import os
import random
import sys
import time

import headwater
from headwater import Message
from headwater.queue import RejectMessage, Worker, WorkerSettings

GROUP = "workers"
SETTINGS = headwater.QueueSettings(max_deliveries=20)
ORDERED = headwater.QueueSettings(max_deliveries=20, ordered=True)


def main(url: str, notes: str, ordered: bool) -> None:
    file = os.open(notes, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def call(message: Message) -> None:
        n = message.value["n"]
        os.write(file, f"begun {n}\n".encode())
        time.sleep(random.random() * 0.02)
        if n % 11 == 0:
            raise RejectMessage("divisible")
        if n % 7 == 0 and message.deliveries == 1:
            raise ValueError("not yet")
        os.write(file, f"done {n}\n".encode())

    quick = WorkerSettings(concurrency=4, backoff="10 milliseconds", longest_backoff="50 milliseconds")
    with (
        headwater.open(url) as log,
        log.queue("t", GROUP, settings=ORDERED if ordered else SETTINGS) as queue,
    ):
        Worker(queue, call, quick).run()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3] == "ordered")
