"""Commits batches of a webhook's rows and sends them, until it is killed: ``HOME URL BATCHES``."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "kits" / "serve"))

from delivery_kit import batch, outbox, sink, until, webhook
from headwater.sinks import Batch
from headwater.sinks.delivery.figures import delivery_status

KEYS = 7
ROWS = 5


def numbered(number: int) -> Batch:
    """Return a batch of rows that are numbered through."""
    numbers = range(number * ROWS, (number + 1) * ROWS)
    return batch(number, *((f"k{each % KEYS}", each) for each in numbers))


def work(home: Path, url: str, batches: int) -> None:
    with sink(home, webhook(url)) as hooks:
        last = hooks.begin()
        for number in range(max(last, 0), batches):
            assert hooks.commit(numbered(number)) == (number > last)
        until(lambda: (status := delivery_status(outbox(home))) and not status.waiting, 600)


if __name__ == "__main__":
    work(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
