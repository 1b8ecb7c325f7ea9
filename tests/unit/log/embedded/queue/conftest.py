"""A small log whose time is set by hand, for queues."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from headwater import durations
from headwater.log.embedded import EmbeddedLog
from headwater.log.embedded.queue import EmbeddedQueue, QueueOpener
from headwater.log.queue_settings import QueueSettings

Open = Callable[..., EmbeddedQueue]


class HandClock:
    """Time that goes on when it is told to, in seconds."""

    def __init__(self) -> None:
        self.now = durations.now()

    def __call__(self) -> int:
        return self.now

    def wait(self, seconds: float) -> None:
        self.now += round(seconds * 1e6)


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def log(tmp_path: Path) -> Iterator[EmbeddedLog]:
    """A log with a topic ``t``, whose segments are small."""
    with EmbeddedLog(tmp_path / "log", segment_bytes=2000) as log:
        log.create_topic("t", "k STRING NOT NULL, n BIGINT, p INT, at TIMESTAMP", key="k")
        yield log


@pytest.fixture
def send(log: EmbeddedLog) -> Callable[..., None]:
    def send_rows(*rows: dict[str, object], headers: dict[str, str] | None = None) -> None:
        with log.producer("t") as producer:
            for row in rows:
                producer.send({"k": "a", "n": 0, "p": 0, "at": None} | row, headers=headers)

    return send_rows


@pytest.fixture
def open_queue(log: EmbeddedLog, clock: HandClock) -> Iterator[Open]:
    opened: list[EmbeddedQueue] = []

    def open_one(settings: QueueSettings | None = None, group: str = "g") -> EmbeddedQueue:
        topic = log.topic("t")
        start = dict.fromkeys(range(topic.partitions), 0)
        opened.append(QueueOpener(log, log._storage, clock).open(topic, group, settings, lambda: start))
        return opened[-1]

    yield open_one
    for queue in opened:
        queue.close()
