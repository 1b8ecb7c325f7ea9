"""Messages of a queue become records of a topic, each once, and are acknowledged when they are durable."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

import headwater
from headwater import Log, ingest
from headwater.errors import TopicError
from headwater.ingest import queue_messages
from headwater.ingest.queue_messages import QueueMessages


@pytest.fixture
def log() -> Iterator[Log]:
    with headwater.open("memory:") as log:
        log.create_topic("emails", "to STRING NOT NULL, n BIGINT", key="to")
        yield log


def send(log: Log, *numbers: int) -> None:
    with log.producer("emails") as producer:
        for n in numbers:
            producer.send({"to": f"k{n % 3}", "n": n}, headers={"x": "y"})


def moved(log: Log, topic: str = "archived") -> list[int]:
    return sorted(row["n"] for batch in log.read(topic) for row in batch.to_pylist())


def run(log: Log, until: int, url: str = "queue:emails?group=g") -> ingest.IngestStatus:
    """Move messages until so many were met."""
    stop = threading.Event()
    with ingest.open(url, "archived", log=log) as work:
        thread = threading.Thread(target=work.run, args=(stop,))
        thread.start()
        deadline = time.monotonic() + 120
        while work.status().counts.get("messages", 0) < until and time.monotonic() < deadline:
            time.sleep(0.02)
        stop.set()
        thread.join()
        return work.status()


def test_messages_are_moved_and_acknowledged(log: Log) -> None:
    send(log, *range(10))
    status = run(log, 10)
    assert (status.counts["records"], moved(log)) == (10, list(range(10)))
    with log.queue("emails", "g") as queue:
        assert queue.status().depth == 0
    [first, *_] = log.read("archived", meta=True)
    assert dict(first.column("_headers")[0].as_py())["headwater.origin"].startswith(b"emails:0:")
    assert dict(first.column("_headers")[0].as_py())["x"] == b"y"


def test_what_was_stored_before_a_crash_is_not_stored_again(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    send(log, *range(5))
    with monkeypatch.context() as patch:
        patch.setattr(queue_messages, "_acknowledge", lambda queue, messages: None)  # killed before it
        run(log, 5)
    send(log, 5, 6)
    status = run(log, 12)  # five of them for the second time
    assert (status.counts["repeated"], moved(log)) == (5, list(range(7)))


def test_a_message_that_does_not_fit_becomes_a_dead_letter(log: Log) -> None:
    log.create_topic("archived", "to STRING NOT NULL, n SMALLINT", key="to")
    send(log, 1, 1_000_000, 2)
    status = run(log, 3)
    assert (status.counts["dead"], moved(log)) == (1, [1, 2])
    with log.queue("emails", "g") as queue:
        assert [dead.value["n"] for dead in queue.dead()] == [1_000_000]


def test_a_topic_that_lacks_a_column_is_refused(log: Log) -> None:
    log.create_topic("archived", "n BIGINT")
    with pytest.raises(TopicError, match='no column "to"'):
        QueueMessages(log, "archived", "archived", ("emails", "g"))
