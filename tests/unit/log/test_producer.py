"""The producer's own machinery, with an appender that fails when told to."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

import pytest

from headwater import topic as topics
from headwater.errors import LogUnavailable
from headwater.log.producer import AHEAD, Producer
from headwater.log.record_batch import OutgoingBatch
from headwater.topic import Topic


class Disk:
    """An appender that keeps rows in a list, and can be full."""

    def __init__(self) -> None:
        self.id, self.last_sequence = "test", -1
        self.full = False
        self.rows: list[int] = []
        self.threads: set[str] = set()

    def topic(self) -> Topic:
        return topics.create("t", "n BIGINT")

    def encode(self, records: OutgoingBatch) -> list[int]:
        self.threads.add(threading.current_thread().name)
        return list(records.batch.column("n").to_pylist())

    def append(self, records: OutgoingBatch, encoded: Sequence[Any]) -> Mapping[int, int]:
        if self.full:
            raise LogUnavailable("the disk is full")
        self.rows += [n for piece in encoded for n in piece]
        return {0: len(self.rows)}

    def close(self) -> None: ...


@pytest.fixture
def disk() -> Disk:
    return Disk()


def producer_on(disk: Disk, **options: Any) -> Producer:
    settings = {"linger": timedelta(milliseconds=1), "buffer": 1000, "on_full": "block"} | options
    return Producer(disk, **settings)


def test_nothing_is_lost_or_repeated_when_appends_fail_for_a_while(disk: Disk) -> None:
    producer = producer_on(disk, buffer=400_000)
    disk.full = True
    n = 0
    while n < 300_000:  # more than the outbox holds
        try:
            producer.send({"n": n})
            n += 1
        except LogUnavailable:
            continue  # told once each time it is tried; the row was not accepted
    for _ in range(2):
        with pytest.raises(LogUnavailable):
            producer.flush()
    assert disk.rows == []
    disk.full = False
    producer.close()
    assert disk.rows == list(range(300_000))


def test_a_batch_that_is_refused_for_want_of_room_is_not_kept(disk: Disk) -> None:
    producer = producer_on(disk)
    disk.full = True
    accepted = []
    for n in range(AHEAD + 3):
        try:
            producer.send_batch([{"n": n}])
            accepted.append(n)
        except LogUnavailable:
            pass
    with pytest.raises(LogUnavailable):
        producer.flush()
    assert disk.rows == []
    disk.full = False
    producer.flush()
    assert disk.rows == accepted
    assert len(accepted) <= AHEAD
    producer.close()


def test_an_error_of_the_past_is_not_raised_once_the_append_has_worked(disk: Disk) -> None:
    producer = producer_on(disk)
    disk.full = True
    producer.send({"n": 1})
    with pytest.raises(LogUnavailable):
        producer.flush()
    disk.full = False
    for _ in range(100):
        if disk.rows:
            break
        threading.Event().wait(0.02)
    assert producer.flush().offsets == {0: 1}
    producer.close()


def test_many_threads_may_send(disk: Disk) -> None:
    producer = producer_on(disk, buffer=500)

    def send(start: int) -> None:
        for n in range(start, start + 20_000):
            producer.send({"n": n})

    threads = [threading.Thread(target=send, args=(i * 20_000,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    producer.close()
    assert sorted(disk.rows) == list(range(80_000))
    for start in range(0, 80_000, 20_000):
        mine = [n for n in disk.rows if start <= n < start + 20_000]
        assert mine == sorted(mine)


def test_a_large_batch_is_encoded_on_several_threads(disk: Disk) -> None:
    producer = producer_on(disk)
    producer.send_batch([{"n": n} for n in range(200_000)])
    producer.close()
    assert disk.rows == list(range(200_000))
    assert all(name.startswith("headwater") for name in disk.threads)
