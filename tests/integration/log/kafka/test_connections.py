"""Connections that are slow, or are cut: what was sent is stored once, and what is read has no gap."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator

import pytest

from headwater.errors import LogUnavailable
from headwater.log import Log
from headwater.log.kafka import appender
from headwater.log.open import open as open_log
from headwater.log.producer import Producer
from kafka_broker import Broker
from kafka_kit import polled, rows
from tcp_proxy import Proxy, running_proxy

pytestmark = pytest.mark.kafka


@pytest.fixture
def proxy(broker: Broker) -> Iterator[Proxy]:
    with running_proxy(broker.advertised, broker.proxied) as running:
        yield running


@pytest.fixture
def away(broker: Broker, proxy: Proxy) -> Iterator[Log]:
    """A log that is reached through the proxy alone."""
    with open_log(f"kafka://127.0.0.1:{broker.advertised}", **{"socket.timeout.ms": 2_000}) as log:
        yield log


def noise(count: int, size: int = 1_000) -> list[dict[str, object]]:
    """Return rows that compression does not make smaller."""
    return [{"n": n, "text": os.urandom(size // 2).hex()} for n in range(count)]


def flushed(producer: Producer, seconds: float = 60) -> int:
    """Flush as often as it takes; return how often it failed."""
    deadline, failed = time.monotonic() + seconds, 0
    while True:
        try:
            producer.flush()
            return failed
        except LogUnavailable:
            failed += 1
            assert time.monotonic() < deadline


@pytest.mark.parametrize("id", ["till", None])
def test_a_batch_that_takes_longer_than_a_transaction_may_is_stored_once(
    kafka: Log, away: Log, proxy: Proxy, name: str, monkeypatch: pytest.MonkeyPatch, id: str | None
) -> None:
    monkeypatch.setattr(appender, "TRANSACTION_MS", 3_000)
    kafka.create_topic(name, "n BIGINT, text STRING", partitions=2)
    with away.producer(name, id=id) as producer:
        proxy.rate = 400_000
        sent = noise(2_000)
        producer.send_batch(sent, sequence=0)
        started = time.monotonic()
        assert producer.flush().offsets.keys() == {0, 1}
        assert time.monotonic() - started > 3
        proxy.rate = None
    assert sorted(rows(kafka, name), key=lambda row: row["n"]) == sent
    assert kafka.verify(name).ok


def test_a_batch_that_is_cut_off_between_two_transactions_is_completed(
    kafka: Log, away: Log, proxy: Proxy, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(appender, "TRANSACTION_MS", 3_000)
    kafka.create_topic(name, "n BIGINT, text STRING", partitions=2)
    old = away.producer(name, id="till")
    proxy.rate = 400_000
    old.send_batch(noise(2_000), sequence=0)
    while not rows(kafka, name):
        time.sleep(0.1)
    monkeypatch.undo()
    with kafka.producer(name, id="till") as new:  # the old one is fenced with its batch half stored
        stored = len(rows(kafka, name))
        assert 0 < stored < 2_000
        new.send_batch(noise(2_000), sequence=0)
    assert sorted(row["n"] for row in rows(kafka, name)) == list(range(2_000))
    proxy.rate = None
    with pytest.raises(Exception, match="has been fenced"):
        old.close()


def test_a_transaction_that_the_broker_gave_up_is_no_fencing(
    kafka: Log, away: Log, proxy: Proxy, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(appender, "TRANSACTION_MS", 2_000)
    kafka.create_topic(name, "n BIGINT, text STRING")
    with away.producer(name, id="till") as producer:
        proxy.rate = 20_000  # as if the process, or the line, had stood still
        producer.send_batch(noise(400), sequence=0)
        time.sleep(5)
        proxy.rate = None
        flushed(producer)
        producer.send_batch(noise(10), sequence=400)
        flushed(producer)
    assert len(rows(kafka, name)) == 410
    assert kafka.verify(name).ok


@pytest.mark.parametrize("id", ["till", None])
def test_connections_that_are_cut_while_a_producer_sends_neither_lose_nor_double(
    kafka: Log, away: Log, proxy: Proxy, name: str, id: str | None
) -> None:
    kafka.create_topic(name, "n BIGINT, text STRING", partitions=2)
    proxy.rate = 2_000_000
    with away.producer(name, id=id) as producer:
        for n, first in enumerate(range(0, 3_000, 500)):
            timer = threading.Timer(0.05 + 0.05 * n, proxy.cut)
            timer.start()
            producer.send_batch([{**row, "n": first + row["n"]} for row in noise(500)], sequence=first)
            flushed(producer)
            timer.join()
    assert sorted(row["n"] for row in rows(kafka, name)) == list(range(3_000))
    assert kafka.verify(name).ok


def test_connections_that_are_cut_while_reading_leave_no_gap(
    kafka: Log, away: Log, proxy: Proxy, name: str
) -> None:
    kafka.create_topic(name, "n BIGINT, text STRING", partitions=2)
    with kafka.producer(name) as producer:
        producer.send_batch(noise(20_000, 400))
    cutting = threading.Event()

    def cut() -> None:
        while not cutting.wait(0.3):
            proxy.cut()

    thread = threading.Thread(target=cut)
    thread.start()
    try:
        assert sorted(row["n"] for row in rows(away, name)) == list(range(20_000))
        followed: list[int] = []
        for batch in away.read(name, follow=True):
            followed += batch.column("n").to_pylist()
            if len(followed) >= 20_000:
                break
        assert sorted(followed) == list(range(20_000))
        ranges = [list(away.appended_ranges(name, partition, 0)) for partition in (0, 1)]
        assert [each[-1].end for each in ranges] == list(kafka.resolve(name, "latest").offsets.values())
    finally:
        cutting.set()
        thread.join()
    with away.consumer(name, f"g-{name}") as consumer:
        proxy.cut()
        assert sorted(row["n"] for row in polled(consumer, 20_000)) == list(range(20_000))
        proxy.cut()
        consumer.commit()
    assert sum(lag.records for lag in kafka.lag(f"g-{name}")) <= 2
