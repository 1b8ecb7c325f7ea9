"""Appends under conditions while the broker is killed and connections are cut: none lost, none twice.

Kafka has no such append; a writer makes it of a transaction, and of what it knows of the topic. Both are in
doubt when an answer is lost, so the callers here repeat what has failed, under the tag of its request.
"""

from __future__ import annotations

import itertools
import os
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import pytest

from account_kit import Deposit, Deposited, account
from headwater.errors import Conflict, Fenced, LogUnavailable
from headwater.log import Log
from headwater.log.conditional import ConditionalProducer
from headwater.log.expected_version import Condition
from headwater.log.kafka import appender, conditional_appender
from headwater.log.kafka.conditional_appender import OwningAppender
from headwater.log.open import open as open_log
from kafka_broker import Broker, running_broker
from kafka_kit import rows, until
from tcp_proxy import Proxy, running_proxy

pytestmark = [pytest.mark.kafka, pytest.mark.faults]
KILLS = int(os.environ.get("FAULT_KILLS", "2"))
SEED = int(os.environ.get("FAULT_SEED", "7"))
SCHEMA = "id STRING NOT NULL, n BIGINT"
KEYS, CALLERS = 5, 3
IMPATIENT = {"socket.timeout.ms": 2_000}
T = TypeVar("T")


@pytest.fixture(autouse=True)
def _hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a writer give up within seconds, so that what it did is in doubt more often."""
    for module in (appender, conditional_appender):
        monkeypatch.setattr(module, "FLUSH_SECONDS", 2.0)
    monkeypatch.setattr(appender, "TRANSACTION_MS", 5_000)


@pytest.fixture
def proxy(broker: Broker) -> Iterator[Proxy]:
    with running_proxy(broker.advertised, broker.proxied) as running:
        yield running


@pytest.fixture
def away(broker: Broker, proxy: Proxy) -> Iterator[Log]:
    """A log that is reached through the proxy alone."""
    with open_log(f"kafka://127.0.0.1:{broker.advertised}", **IMPATIENT) as log:
        yield log


class Callers:
    """Threads that append numbers under conditions until stopped or fenced; what fails is repeated."""

    def __init__(self, numbers: Iterator[int], call: Callable[[int], int]):
        self.stored: dict[int, int] = {}
        """The numbers that were acknowledged, and their offsets; -1 if one was found to be stored."""
        self.failures, self.fenced, self.error = 0, 0, list[BaseException]()
        self._numbers, self._call = numbers, call
        self._stopping = threading.Event()
        self._threads = [threading.Thread(target=self._run, daemon=True) for _ in range(CALLERS)]

    def __enter__(self) -> Callers:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        for thread in self._threads:
            thread.join(120)

    def goes_on(self, count: int = 20) -> None:
        """Wait until so many more are stored."""
        goal = len(self.stored) + count
        until(lambda: len(self.stored) >= goal or bool(self.error), 120)
        assert not self.error and len(self.stored) >= goal, (self.error, len(self.stored), goal)

    def _run(self) -> None:
        try:
            while not self._stopping.is_set():
                number = next(self._numbers)
                self.stored[number] = self._until_stored(number)
        except Fenced:
            self.fenced += 1
        except BaseException as error:  # told by goes_on
            self.error.append(error)

    def _until_stored(self, number: int) -> int:
        while True:
            try:
                return self._call(number)
            except LogUnavailable:
                self.failures += 1
                time.sleep(0.05)


def appending(producer: ConditionalProducer) -> Callable[[int], int]:
    """Return what appends a number once, on the version of its key, and returns its offset."""

    def append(number: int) -> int:
        key, tag = f"k{number % KEYS}", f"request:{number}"
        once = Condition(key, (tag,))
        while True:
            newest = Condition(key, after=producer.version(key))
            try:
                row = {"id": key, "n": number}
                return producer.append([row], tags=[tag], conditions=[once, newest]).offsets[0]
            except Conflict as conflict:
                if conflict.condition == once:
                    return -1

    return append


def patiently(call: Callable[[], T]) -> T:
    deadline = time.monotonic() + 120
    while True:
        try:
            return call()
        except LogUnavailable:
            assert time.monotonic() < deadline
            time.sleep(0.1)


def check(log: Log, topic: str, stored: dict[int, int]) -> None:
    """Each number is there once where its writer said, and nothing else but what nobody could wait for."""
    found = rows(log, topic, meta=True)
    assert [n for n, count in Counter(row["n"] for row in found).items() if count > 1] == [], "stored twice"
    places = {row["n"]: row["_offset"] for row in found}
    assert sorted(stored.keys() - places.keys()) == [], "an acknowledged append is lost"
    told = {n: offset for n, offset in stored.items() if offset >= 0}
    assert {n: places[n] for n in told} == told
    assert log.verify(topic).ok


@pytest.mark.timeout(300 + 60 * KILLS)
def test_writers_that_take_over_from_each_other_while_the_broker_is_killed_lose_and_double_nothing(
    name: str,
) -> None:
    chance, numbers, stored, failures = random.Random(SEED), itertools.count(), dict[int, int](), 0
    with (
        running_broker() as broker,
        open_log(broker.url, **IMPATIENT) as log,
        open_log(broker.url, **IMPATIENT) as other,
    ):
        log.create_topic(name, SCHEMA, key="id")
        writer = log.conditional_producer(name)
        for kill in range(KILLS):
            successor = (other, log)[kill % 2]
            with Callers(numbers, appending(writer)) as callers:
                callers.goes_on()
                time.sleep(chance.uniform(0.0, 0.3))
                broker.node.kill()
                time.sleep(chance.choice([0.2, 4.0]))  # shorter and longer than a writer waits
                broker.node.start()
                callers.goes_on()
                taken_over = patiently(lambda log=successor: log.conditional_producer(name))
                until(lambda running=callers: running.fenced == CALLERS or bool(running.error), 60)
            assert (callers.fenced, callers.error) == (CALLERS, [])
            stored |= callers.stored
            failures += callers.failures
            writer = taken_over
        with Callers(numbers, appending(writer)) as callers:
            callers.goes_on()
        writer.close()
        check(log, name, stored | callers.stored)
    print(f"{KILLS} kills of the broker and writers fenced, {len(stored)} appends, {failures} repeated")


@pytest.mark.timeout(300 + 20 * KILLS)
def test_commands_of_a_decider_are_carried_out_once_while_connections_are_cut(
    kafka: Log, away: Log, proxy: Proxy, name: str
) -> None:
    chance, decider, cuts = random.Random(SEED), account(name), 3 * KILLS
    with decider.open(away) as accounts:

        def deposit(number: int) -> int:
            made = accounts.execute(f"k{number % KEYS}", Deposit(number + 1), request_id=str(number))
            assert made.events == (Deposited(number + 1),)
            return made.version - 1

        with Callers(itertools.count(), deposit) as callers:
            for _ in range(cuts):
                callers.goes_on(5)
                time.sleep(chance.uniform(0.0, 0.1))
                proxy.open = False
                proxy.cut()
                time.sleep(chance.choice([0.05, 4.0]))
                proxy.open = True
            callers.goes_on(5)
        balances = {f"k{n}": patiently(lambda key=f"k{n}": accounts.state(key)) for n in range(KEYS)}
    stored = [(row["key"], row["cents"], row["_offset"]) for row in rows(kafka, name, meta=True)]
    expected = {n: (f"k{n % KEYS}", n + 1, offset) for n, offset in callers.stored.items()}
    assert sorted(stored) == sorted(expected.values())
    assert balances == {key: sum(cents for k, cents, _ in stored if k == key) for key in balances}
    print(f"{cuts} cuts, {len(stored)} commands, {callers.failures} repeated")


def test_what_is_appended_after_a_commit_without_an_answer_is_stored(
    kafka: Log, away: Log, proxy: Proxy, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kafka.create_topic(name, SCHEMA, key="id")
    with away.conditional_producer(name) as producer:
        append = appending(producer)
        told = {0: append(0)}
        commit = OwningAppender._commit

        def unanswered(writer: OwningAppender, client: Any) -> None:
            proxy.answers = False
            commit(writer, client)

        with monkeypatch.context() as patch:
            patch.setattr(OwningAppender, "_commit", unanswered)
            with pytest.raises(LogUnavailable):
                append(1)
        proxy.answers = True
        told[2] = patiently(lambda: append(2))
        assert append(1) == -1, "its request was carried out"
        told[1], told[3] = -1, append(3)
    check(kafka, name, told)
