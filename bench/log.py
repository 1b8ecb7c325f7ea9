"""The embedded log beside a real Kafka broker: the same events, the same machine, the same run."""

from __future__ import annotations

import gc
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.json as pj
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from rich.console import Console
from rich.table import Table

import headwater
from bench import events
from bench.stages import limits, stages
from headwater import schema as schemas

sys.path.append(str(Path(__file__).parents[1] / "tests" / "servers"))
from kafka_broker import Broker, running_broker  # the tests' own broker

PARTITIONS = 4
ROUNDS = 3
PASSES = 5
"""How often send_batch takes the events in one round: one pass is over in a tenth of a second."""
ROWS = 1_000_000
HISTORY = 10_000_000
WARM_UP = 1_000
"""Appends left out of the latency: connections and caches are made then."""
console = Console(width=110)


def main() -> None:
    root = Path(tempfile.mkdtemp(prefix="headwater-bench-"))
    try:
        with running_broker() as broker, headwater.open(f"file:{root / 'log'}") as log:
            Bench(root, log, broker).run()
    finally:
        shutil.rmtree(root)


class Bench:
    def __init__(self, root: Path, log: headwater.Log, broker: Broker):
        self.root, self.log, self.broker = root, log, broker
        self.results = Table(title="embedded log beside Kafka, same events, same run", title_justify="left")
        for column in ("measure", "headwater", "kafka", "ratio", "goal"):
            self.results.add_column(column, justify="left" if column == "measure" else "right")

    def run(self) -> None:
        self.say(f"making {ROWS:,} events")
        self.rows = events.rows(ROWS)
        self.messages = events.messages(self.rows)
        gc.freeze()  # else the collector walks these millions of objects again and again, on both sides
        self.send()
        self.send_batch()
        self.read()
        self.wake_up()
        self.disk()
        self.history()
        console.print(self.results)
        self.profile()

    def say(self, what: str) -> None:
        console.print(f"[dim]{time.strftime('%H:%M:%S')} {what}[/dim]")

    def row(self, measure: str, ours: str, theirs: str = "", ratio: str = "", goal: str = "") -> None:
        self.results.add_row(measure, ours, theirs, ratio, goal)

    def rates(self, measure: str, ours: Callable[[], float], theirs: Callable[[], float], goal: str) -> None:
        """Measure both in turns, so that a noisy moment hits both, and compare the best of each."""
        mine, other = [], []
        for number in range(ROUNDS):
            self.say(f"{measure}, round {number + 1} of {ROUNDS}")
            mine.append(ours())
            other.append(theirs())
        best, rival = max(mine), max(other)
        self.row(measure, f"{best / 1e6:.2f} M/s", f"{rival / 1e6:.2f} M/s", f"{best / rival:.1f}×", goal)

    # What is measured

    def send(self) -> None:
        self.rates("send, row by row, 4 partitions", self._send_ours, self._send_kafka, "≥ 1.5×")

    def send_batch(self) -> None:
        self.batches = events.table(self.rows, schemas.parse(events.SCHEMA)).to_batches(100_000)
        plain = headwater.open(self.log.url, compression="none")
        for log, how in ((plain, "uncompressed"), (self.log, "LZ4")):
            for count in (1, PARTITIONS):
                name = f"send_batch, {how}, {count} partition{'s' if count > 1 else ''}"
                ours = partial(self._batch_ours, log, count)
                self.rates(name, ours, self._send_kafka, "≥ 20×")
        plain.close()

    def read(self) -> None:
        self.rates("read into Arrow", self._read_ours, self._read_kafka, "≥ 10×")

    def wake_up(self) -> None:
        self.say("append to wake-up, 1,000 appends a second, 5 s each")
        ours, theirs = self._latency("headwater", self.log.url), self._latency("kafka", self.broker.servers)
        for name, at in (("p50", 50), ("p99", 99)):
            mine, other = (
                statistics.quantiles(ours, n=100)[at - 1],
                statistics.quantiles(theirs, n=100)[at - 1],
            )
            goal = "≤ 1×" if at == 99 else ""
            self.row(
                f"append to wake-up, {name}",
                f"{mine * 1e3:.2f} ms",
                f"{other * 1e3:.2f} ms",
                f"{mine / other:.2f}×",
                goal,
            )

    def disk(self) -> None:
        info = self.log.describe(self.batched)
        files = list((self.broker.directory / "data").glob(f"{self.last_kafka}-*/*.log"))
        mine = info.size / info.records
        other = sum(f.stat().st_size for f in files) / ROWS
        self.row("bytes per event on disk", f"{mine:.1f}", f"{other:.1f}", f"{mine / other:.2f}×")

    def history(self) -> None:
        self.say(f"writing a topic of {HISTORY:,} events")
        topic = self._topic()
        with self.log.producer(topic) as producer:
            for _ in range(HISTORY // ROWS):
                for batch in self.batches:
                    producer.send_batch(batch)
        self.say("reading it in a process of its own")
        peak = float(_child("read", self.log.url, topic)[0])
        self.row(f"memory, reading {HISTORY // 10**6} M events", f"{peak:.0f} MB", goal="< 300 MB")
        self.say("opening and appending, with and without history")
        times = _both(lambda t: _open_and_append(self.log.url, t), self._topic(), topic)
        for name, (empty, full) in times.items():
            self.row(
                f"{name}: 0 against {HISTORY // 10**6} M events",
                f"{full * 1e3:.2f} ms", f"{empty * 1e3:.2f} ms (at 0)", f"{full / empty:.2f}×", "≤ 1.2×",
            )  # fmt: skip

    def profile(self) -> None:
        """Say where the time of send_batch goes: one batch after the other, on one core, by stage."""
        table = Table(title="send_batch by stage, ns of one core per row", title_justify="left")
        for column in ("stage", "1 partition", f"{PARTITIONS} partitions"):
            table.add_column(column, justify="left" if column == "stage" else "right")
        one, many = (stages(self.batches[0], count) for count in (1, PARTITIONS))
        for name in one:
            table.add_row(name, f"{one[name]:.0f}", f"{many[name]:.0f}")
        table.add_row("sum", f"{sum(one.values()):.0f}", f"{sum(many.values()):.0f}")
        console.print(table)
        at_best = Table(title="what this machine allows at best", title_justify="left", show_header=False)
        for name, value in limits(self.batches[0]).items():
            at_best.add_row(name, value)
        console.print(at_best)

    # How

    def _topic(self, partitions: int = PARTITIONS) -> str:
        name = f"events-{uuid.uuid4().hex[:8]}"
        self.log.create_topic(name, events.SCHEMA, key=events.KEY, event_time="at", partitions=partitions)
        return name

    def _send_ours(self) -> float:
        with self.log.producer(self._topic()) as producer:
            start = time.perf_counter()
            for row in self.rows:
                producer.send(row)
            producer.flush()
            return ROWS / (time.perf_counter() - start)

    def _batch_ours(self, log: headwater.Log, partitions: int) -> float:
        self.batched = self._topic(partitions)
        with log.producer(self.batched) as producer:
            start = time.perf_counter()
            for _ in range(PASSES):
                for batch in self.batches:
                    producer.send_batch(batch)
            producer.flush()
            return PASSES * ROWS / (time.perf_counter() - start)

    def _send_kafka(self) -> float:
        self.last_kafka = _kafka_topic(self.broker.servers)
        producer = Producer(
            {
                "bootstrap.servers": self.broker.servers,
                "acks": "all",
                "enable.idempotence": True,
                "linger.ms": 20,
                "compression.type": "lz4",
                "queue.buffering.max.messages": 1_000_000,
                "queue.buffering.max.kbytes": 1 << 20,
            }
        )
        topic = self.last_kafka
        start = time.perf_counter()
        for number, (key, value) in enumerate(self.messages):
            producer.produce(topic, value, key)
            if number % 10_000 == 0:
                producer.poll(0)
        producer.flush()
        return ROWS / (time.perf_counter() - start)

    def _read_ours(self) -> float:
        start = time.perf_counter()
        count = sum(len(batch) for batch in self.log.read(self.batched))
        return count / (time.perf_counter() - start)

    def _read_kafka(self) -> float:
        consumer = Consumer(
            {
                "bootstrap.servers": self.broker.servers,
                "group.id": uuid.uuid4().hex,
                "enable.auto.commit": False,
            }
        )
        consumer.assign([TopicPartition(self.last_kafka, p, 0) for p in range(PARTITIONS)])
        columns = schemas.parse(events.SCHEMA)
        told = pj.ParseOptions(explicit_schema=columns.set(3, pa.field("at", pa.int64())))
        start, count = time.perf_counter(), 0
        while count < ROWS:
            found = consumer.consume(10_000, 1.0)
            # The quickest way we know from messages to typed columns.
            text = b"\n".join([message.value() for message in found])
            whole = pj.ReadOptions(block_size=len(text) + 1)
            pj.read_json(pa.BufferReader(text), whole, told).cast(columns)
            count += len(found)
        took = time.perf_counter() - start
        consumer.close()
        return count / took

    def _latency(self, side: str, address: str) -> list[float]:
        topic = self._topic() if side == "headwater" else _kafka_topic(address)
        reader = subprocess.Popen(
            [sys.executable, "-m", "bench.child", f"wake-{side}", address, topic],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert reader.stdout is not None
        reader.stdout.readline()  # it is ready
        _child(f"pace-{side}", address, topic)
        return [float(line) for line in reader.stdout][WARM_UP:]


def _child(*arguments: str) -> list[str]:
    command = [sys.executable, "-m", "bench.child", *arguments]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.split()


def _kafka_topic(servers: str) -> str:
    name = f"events-{uuid.uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": servers})
    admin.create_topics([NewTopic(name, PARTITIONS, 1)])[name].result()
    return name


def _open_and_append(url: str, topic: str) -> dict[str, float]:
    start = time.perf_counter()
    log = headwater.open(url)
    log.resolve(topic, "latest")
    opened = time.perf_counter()
    producer = log.producer(topic)
    producer.send_batch([{"user": "u", "url": "/", "amount": 1.0, "at": events.FIRST}])
    first = time.perf_counter()
    producer.send_batch([{"user": "u", "url": "/", "amount": 1.0, "at": events.FIRST}])
    done = time.perf_counter()
    producer.close()
    log.close()
    return {"open": opened - start, "first append": first - opened, "append": done - first}


def _both(
    measure: Callable[[str], dict[str, float]], empty: str, full: str
) -> dict[str, tuple[float, float]]:
    """Measure both topics in turns and return the medians."""
    taken: dict[str, tuple[list[float], list[float]]] = {}
    for _ in range(100):
        for side, topic in enumerate((empty, full)):
            for name, seconds in measure(topic).items():
                taken.setdefault(name, ([], []))[side].append(seconds)
    return {name: (statistics.median(a), statistics.median(b)) for name, (a, b) in taken.items()}
