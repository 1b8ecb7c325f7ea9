"""A producer that looks at how much waits: it blocks, drops or raises."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

import headwater
from headwater import Log
from headwater.errors import BufferFull, UsageError
from headwater.queue import BoundedProducer


@pytest.fixture
def log() -> Iterator[Log]:
    with headwater.open("memory:") as log:
        log.create_topic("t", "n BIGINT")
        yield log


def depth(log: Log) -> int | None:
    with log.queue("t", "g") as queue:
        return queue.status().depth


def test_what_is_too_much_is_dropped_and_counted(log: Log) -> None:
    with BoundedProducer(log, "t", "g", limit=10, on_full="drop") as producer:
        for n in range(25):
            producer.send({"n": n})
        assert producer.dropped == 15
    assert depth(log) == 10


def test_what_is_too_much_is_an_error(log: Log) -> None:
    with BoundedProducer(log, "t", "g", limit=1, on_full="error") as producer:
        producer.send({"n": 0})
        with pytest.raises(BufferFull, match='group "g"'):
            producer.send({"n": 1})
        assert producer.flush().offsets == {0: 1}


def test_who_blocks_goes_on_when_there_is_room(log: Log) -> None:
    with BoundedProducer(log, "t", "g", limit=2) as producer, log.queue("t", "g") as queue:
        producer.send({"n": 0})
        producer.send({"n": 1})
        with pytest.raises(BufferFull):
            producer.send({"n": 2}, timeout=0.05)
        timer = threading.Timer(0.2, lambda: queue.receive(timeout=5)[0].ack())
        timer.start()
        producer.send({"n": 2}, timeout=20)
        timer.join()
    assert depth(log) == 2


def test_what_cannot_be_meant_is_refused(log: Log) -> None:
    with pytest.raises(UsageError, match="1 message or more"):
        BoundedProducer(log, "t", "g", limit=0)
    with pytest.raises(UsageError, match="on_full"):
        BoundedProducer(log, "t", "g", limit=1, on_full="explode")  # type: ignore[arg-type]
