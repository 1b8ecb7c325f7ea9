"""Queues beside RabbitMQ and Redis streams, in one run: sent durably, received, acknowledged one by one.

RabbitMQ: a durable queue, persistent messages, publisher confirms, manual acknowledgements, by pika. Redis:
a stream with a consumer group, every append synced (``appendfsync always``), by redis-py. Ours: a topic in a
directory, synced, and a queue over it. Messages are a row of 100 bytes; confirmed, received and counted in
batches of 100, each acknowledged by a call of its own. A round trip is one message sent and confirmed, one
received, one acknowledged. Beside that, how long a call to acknowledge takes: RabbitMQ's and ours are not
waited for on a disk; RabbitMQ's is not answered at all.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from rich.console import Console
from rich.table import Table

import headwater
from bench.rabbitmq_server import Missing, running_server

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "tests" / "servers")]
WAITING = [0, int(os.environ.get("BENCH_WAITING", 1_000_000))]
MESSAGES = int(os.environ.get("BENCH_MESSAGES", 20_000))
TRIPS = int(os.environ.get("BENCH_TRIPS", 500))
ROUNDS = int(os.environ.get("BENCH_ROUNDS", 3))
BATCH, BODY = 100, "x" * 80
console = Console(width=120)


class System(Protocol):
    """What is measured."""

    def send(self, count: int) -> None:
        """Send messages; when it returns, they are durable."""

    def receive(self, count: int) -> Sequence[Any]:
        """Return messages."""

    def ack(self, message: Any) -> None:
        """Acknowledge one."""


@dataclass
class Figures:
    """One system with a number of messages waiting; seconds."""

    send: list[float] = field(default_factory=list)
    receive: list[float] = field(default_factory=list)
    trips: list[float] = field(default_factory=list)
    acks: list[float] = field(default_factory=list)


class Ours:
    """A queue over a topic in a directory."""

    def __init__(self, directory: str):
        self._log = headwater.open(f"file:{directory}/log")
        self._log.create_topic("work", "n BIGINT, body STRING")
        self._producer = self._log.producer("work")
        self._queue = self._log.queue("work", "bench")
        self._rows = [{"n": n, "body": BODY} for n in range(BATCH)]

    def send(self, count: int) -> None:
        for _ in range(0, count, BATCH):
            self._producer.send_batch(self._rows[:count])
            self._producer.flush()

    def receive(self, count: int) -> Sequence[Any]:
        return self._queue.receive(count, timeout=10)

    def ack(self, message: Any) -> None:
        message.ack()


class RabbitMQ:
    """A durable queue by pika."""

    def __init__(self, port: int):
        import pika

        self._persistent = pika.BasicProperties(delivery_mode=2)
        self._connection = pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", port))
        self._sending, self._channel = self._connection.channel(), self._connection.channel()
        self._channel.queue_declare("work", durable=True)
        self._channel.basic_qos(prefetch_count=BATCH)
        self._published = self._reached = 0
        self._inbox: list[int] = []
        # Many are sent before the first is confirmed, which a blocking channel of pika's does not do.
        self._sending._impl.confirm_delivery(self._confirmed)
        self._consuming = False

    def _confirmed(self, frame: Any) -> None:
        assert type(frame.method).__name__ == "Ack"
        self._reached = max(self._reached, frame.method.delivery_tag)

    def _arrived(self, _channel: Any, method: Any, _properties: Any, _body: bytes) -> None:
        self._inbox.append(method.delivery_tag)

    def send(self, count: int) -> None:
        for first in range(0, count, BATCH):
            for _ in range(min(BATCH, count - first)):
                self._sending._impl.basic_publish("", "work", BODY.encode() + b" " * 20, self._persistent)
                self._published += 1
            while self._reached < self._published:
                self._connection.process_data_events(0)  # a longer wait is not ended by a confirmation

    def receive(self, count: int) -> Sequence[Any]:
        if not self._consuming:
            self._consuming = True
            self._channel.basic_consume(
                "work", lambda _c, method, _p, _b: self._inbox.append(method.delivery_tag)
            )
        until = time.monotonic() + 10
        while not self._inbox and time.monotonic() < until:
            self._connection.process_data_events(0.1)
        found, self._inbox = self._inbox[:count], self._inbox[count:]
        return found

    def ack(self, message: Any) -> None:
        self._channel.basic_ack(message)


class Redis:
    """A stream with a consumer group."""

    def __init__(self, port: int):
        import redis

        self._client = redis.Redis(port=port)
        self._client.xgroup_create("work", "bench", "0", mkstream=True)

    def send(self, count: int) -> None:
        for first in range(0, count, BATCH):
            with self._client.pipeline(transaction=False) as sending:
                for n in range(min(BATCH, count - first)):
                    sending.xadd("work", {"n": n, "body": BODY})
                sending.execute()

    def receive(self, count: int) -> Sequence[Any]:
        [(_, found)] = self._client.xreadgroup("bench", "one", {"work": ">"}, count=count, block=10_000)
        return [id for id, _ in found]

    def ack(self, message: Any) -> None:
        self._client.xack("work", "bench", message)


@contextmanager
def ours() -> Iterator[System]:
    directory = tempfile.mkdtemp(prefix="headwater-bench-")
    try:
        yield Ours(directory)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


@contextmanager
def rabbitmq() -> Iterator[System]:
    with running_server() as port:
        time.sleep(3)  # it answers before it has started
        yield RabbitMQ(port)


@contextmanager
def redis_streams() -> Iterator[System]:
    import redis_server

    with redis_server.running_server("--appendonly", "yes", "--appendfsync", "always") as server:
        yield Redis(server.port)


def measure(system: System, figures: Figures) -> None:
    before = time.perf_counter()
    system.send(MESSAGES)
    figures.send.append(time.perf_counter() - before)
    before, left = time.perf_counter(), MESSAGES
    while left:
        messages = system.receive(min(BATCH, left))
        assert messages
        for message in messages:
            asked = time.perf_counter()
            system.ack(message)
            figures.acks.append(time.perf_counter() - asked)
        left -= len(messages)
    figures.receive.append(time.perf_counter() - before)
    for _ in range(TRIPS):
        asked = time.perf_counter()
        system.send(1)
        [message] = system.receive(1)
        system.ack(message)
        figures.trips.append(time.perf_counter() - asked)


def quantile(times: Sequence[float], share: float) -> float:
    return sorted(times)[min(len(times) - 1, int(len(times) * share))]


def main() -> None:
    results: dict[tuple[str, int], Figures] = {}
    with ExitStack() as stack:
        systems: dict[str, System] = {}
        for name, opening in (("headwater", ours), ("RabbitMQ", rabbitmq), ("Redis streams", redis_streams)):
            try:
                systems[name] = stack.enter_context(opening())
            except (Missing, ImportError) as error:
                console.print(f"[yellow]{name}: {error}[/yellow]")
        for waiting in WAITING:
            for name, system in systems.items():
                system.send(waiting)
                results[name, waiting] = Figures()
            for _ in range(ROUNDS):  # in turns: what else the machine does is the same for all
                for name, system in systems.items():
                    measure(system, results[name, waiting])
            console.print(f"[dim]{waiting:,} waiting: done[/dim]")
    report(results)


def report(results: dict[tuple[str, int], Figures]) -> None:
    table = Table("waiting", "system", "send/s", "receive+ack/s", "all three/s", "beside RabbitMQ",
                  "round trip p50", "p99", "ack p50", "ack p99")  # fmt: skip
    for (name, waiting), each in sorted(results.items(), key=lambda item: item[0][1]):
        total = min(a + b for a, b in zip(each.send, each.receive, strict=True))
        other = results.get(("RabbitMQ", waiting))
        beside = min(a + b for a, b in zip(other.send, other.receive, strict=True)) / total if other else None
        table.add_row(
            f"{waiting:,}", name, f"{MESSAGES / min(each.send):,.0f}", f"{MESSAGES / min(each.receive):,.0f}",
            f"{MESSAGES / total:,.0f}", "" if beside is None else f"{beside:.2f}×",
            *(f"{quantile(each.trips, share) * 1e3:.2f} ms" for share in (0.5, 0.99)),
            *(f"{quantile(each.acks, share) * 1e6:.0f} µs" for share in (0.5, 0.99)),
        )  # fmt: skip
    console.print(table)


if __name__ == "__main__":
    main()
