"""Brokers that restart, are killed, or hand their partitions over: everything once, and on without hands."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from headwater.errors import HeadwaterError, LogUnavailable
from headwater.log import Log
from headwater.log.open import open as open_log
from headwater.log.producer import Producer
from kafka_broker import Broker, Brokers, Node, running_broker
from kafka_kit import admin, rows, until

pytestmark = [pytest.mark.kafka, pytest.mark.long]


@pytest.fixture
def log(brokers: Brokers) -> Iterator[Log]:
    with open_log(brokers.url) as opened:
        yield opened
    for node in brokers.nodes:
        if node.process is None:
            node.start()


def leaders(servers: str, topic: str) -> dict[int, int]:
    """Return which broker leads each partition."""
    partitions = admin(servers).list_topics(topic, timeout=10).topics[topic].partitions
    return {number: each.leader for number, each in partitions.items()}


def is_whole(servers: str, topic: str) -> bool:
    """Tell whether all replicas of a topic are in sync."""
    partitions = admin(servers).list_topics(topic, timeout=10).topics[topic].partitions.values()
    return all(len(each.isrs) == len(each.replicas) for each in partitions)


class Writer:
    """Sends numbers, one batch after the other, until it is stopped; what fails is sent again."""

    def __init__(self, log: Log, topic: str, id: str | None):
        self.count = self.failures = 0
        self.error: HeadwaterError | None = None
        self._producer = log.producer(topic, id=id)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        try:
            self._send()
        except HeadwaterError as error:
            self.error = error

    def _send(self) -> None:
        while not self._stopping.is_set():
            rows = [{"n": self.count + n} for n in range(50)]
            self._producer.send_batch(rows, sequence=self.count)
            self.failures += _flushed(self._producer)
            self.count += 50
            time.sleep(0.01)

    def goes_on(self, count: int = 500) -> bool:
        """Wait until so many more are stored."""
        goal = self.count + count
        until(lambda: self.count >= goal or self.error is not None, 60)
        if self.error is not None:
            raise self.error
        return self.count >= goal

    def __enter__(self) -> Writer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join(60)
        self._producer.close()


def _flushed(producer: Producer) -> int:
    failed, deadline = 0, time.monotonic() + 120
    while True:
        try:
            producer.flush()
            return failed
        except LogUnavailable:
            if time.monotonic() > deadline:
                raise
            failed += 1
            time.sleep(0.1)


@contextmanager
def followed(log: Log, topic: str) -> Iterator[list[int]]:
    """Collect what somebody who follows a topic reads meanwhile."""
    found: list[int] = []

    def follow() -> None:
        for batch in log.read(topic, follow=True):
            found.extend(batch.column("n").to_pylist())
            if -1 in found:
                return

    thread = threading.Thread(target=follow)
    thread.start()
    try:
        yield found
    finally:
        with log.producer(topic) as producer:
            producer.send({"n": -1})
        thread.join(60)
        if -1 in found:
            found.remove(-1)


def check(log: Log, topic: str, followed: list[int], count: int) -> None:
    everything = sorted(row["n"] for row in rows(log, topic) if row["n"] >= 0)
    assert everything == list(range(count))
    assert sorted(followed) == everything
    assert log.verify(topic).ok


def kill(brokers: Brokers, topic: str) -> Node:
    """Kill the broker that leads the first partition."""
    node = brokers.nodes[leaders(brokers.servers, topic)[0] - 1]
    node.kill()
    return node


@pytest.mark.parametrize("id", ["till", None])
def test_a_leader_that_is_killed_loses_and_doubles_nothing(
    brokers: Brokers, log: Log, name: str, id: str | None
) -> None:
    log.create_topic(name, "n BIGINT", partitions=3)
    with followed(log, name) as found, Writer(log, name, id) as writer:
        assert writer.goes_on()
        node = kill(brokers, name)
        assert writer.goes_on()
        node.start()
        assert until(lambda: is_whole(brokers.servers, name), 60)
        assert writer.goes_on()
    check(log, name, found, writer.count)


def test_partitions_that_are_handed_over_are_read_and_written_on(
    brokers: Brokers, log: Log, name: str
) -> None:
    log.create_topic(name, "n BIGINT", partitions=3)
    with followed(log, name) as found, Writer(log, name, "till") as writer:
        assert writer.goes_on(200)
        before = leaders(brokers.servers, name)
        node = brokers.nodes[before[0] - 1]
        node.stop()
        assert writer.goes_on(200)
        assert leaders(brokers.servers, name) != before
        node.start()
        assert until(lambda: is_whole(brokers.servers, name), 60)
        assert writer.goes_on(200)
    check(log, name, found, writer.count)


def test_a_member_of_a_group_goes_on_when_its_coordinator_is_killed(
    brokers: Brokers, log: Log, name: str
) -> None:
    log.create_topic(name, "n BIGINT", partitions=3)
    with log.producer(name) as producer:
        producer.send_batch([{"n": n} for n in range(300)])
    with log.consumer(name, f"g-{name}") as consumer:
        found = _polled(consumer.poll, 300)
        consumer.commit()
        node = brokers.nodes[_coordinator(brokers, f"g-{name}") - 1]
        node.kill()
        try:
            with log.producer(name, id="till") as producer:
                producer.send_batch([{"n": n} for n in range(300, 600)])
                _flushed(producer)
            found += _polled(consumer.poll, 300)
            _committed(consumer.commit)
        finally:
            node.start()
    assert sorted(found) == list(range(600))
    assert until(lambda: is_whole(brokers.servers, name), 60)
    assert sum(lag.records for lag in log.lag(f"g-{name}")) <= 3  # the markers of a transaction


def _coordinator(brokers: Brokers, group: str) -> int:
    told = admin(brokers.servers).describe_consumer_groups([group])[group].result(30)
    return int(told.coordinator.id)


def _polled(poll: Callable[[float], object], count: int) -> list[int]:
    found: list[int] = []
    deadline = time.monotonic() + 120
    while len(found) < count and time.monotonic() < deadline:
        try:
            batch = poll(1)
        except LogUnavailable:
            continue
        found += [] if batch is None else batch.column("n").to_pylist()  # type: ignore[attr-defined]
    return found


def _committed(commit: Callable[[], None]) -> None:
    for _ in range(30):
        try:
            return commit()
        except LogUnavailable:
            time.sleep(0.5)
    raise AssertionError("the group does not come back")


def test_a_broker_that_restarts_is_waited_for_by_those_who_have_a_log_open(name: str) -> None:
    with running_broker() as broker, open_log(broker.url) as log, open_log(broker.url) as other:
        log.create_topic(name, "n BIGINT")
        with followed(log, name) as found, Writer(log, name, "till") as writer:
            assert writer.goes_on(200)
            restart(broker)
            assert writer.goes_on(200)
        check(log, name, found, writer.count)
        other.create_topic(f"{name}-b", "n BIGINT")
        assert log.topic(f"{name}-b").partitions == 1


def restart(broker: Broker) -> None:
    broker.node.kill()
    time.sleep(1)
    broker.node.start()
