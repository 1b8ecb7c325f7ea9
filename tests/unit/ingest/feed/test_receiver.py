"""A feed over a network that loses, repeats and reorders: what comes out is what the log has."""

from __future__ import annotations

import random
import socket
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import headwater
from headwater import Log
from headwater.ingest import Feed, FeedSender
from headwater.ingest.feed import receiver
from headwater.ingest.feed.wire import HEARTBEAT, FeedDatagram
from soaking import examples

SCHEMA = "id BIGINT NOT NULL, text STRING, free VARIANT, amount DECIMAL(9,2), tags ARRAY<STRING>"


class LossyNetwork:
    """Passes datagrams on as chance wants it."""

    def __init__(self, chance: random.Random):
        self._chance = chance
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
        self._socket.bind(("127.0.0.1", 0))
        self._socket.setblocking(False)
        self._held: list[bytes] = []
        self.address = f"127.0.0.1:{self._socket.getsockname()[1]}"

    def pass_on(self, to: str, *, loss: float = 0.3) -> None:
        while True:
            try:
                self._held.append(self._socket.recv(1 << 16))
            except BlockingIOError:
                break
        if self._chance.random() < 0.5:
            self._chance.shuffle(self._held)
        host, _, port = to.rpartition(":")
        for data in self._held[: self._chance.randrange(len(self._held) + 1)]:
            self._held.remove(data)
            for _ in range(self._chance.choice([1, 1, 2])):
                if self._chance.random() >= loss:
                    damaged = self._chance.random() < 0.05
                    self._socket.sendto(data[:-1] + b"?" if damaged else data, (host, int(port)))

    def close(self) -> None:
        self._socket.close()


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(receiver, "REORDER_SECONDS", 0.001)
    monkeypatch.setattr(receiver, "SILENCE_SECONDS", 0.02)


def rows(chance: random.Random, count: int, first: int) -> list[dict[str, object]]:
    return [
        {
            "id": first + number,
            "text": chance.choice([None, "", "zwölf\n", "x" * chance.choice([10, 300, 3000])]),
            "free": chance.choice([None, {"a": [1, 2.5, None]}, "text"]),
            "amount": None,
            "tags": chance.choice([None, [], ["a", None]]),
        }
        for number in range(count)
    ]


def by_partition(
    batches: Iterator[pa.RecordBatch] | list[pa.RecordBatch],
) -> dict[int, list[dict[str, object]]]:
    found: dict[int, list[dict[str, object]]] = defaultdict(list)
    for batch in batches:
        for row in batch.to_pylist():
            found[row["_partition"]].append(row)
    return dict(found)


def stored(log: Log) -> dict[int, list[dict[str, object]]]:
    names = [*log.topic("t").schema.names, "_partition", "_offset"]
    return by_partition(batch.select(names) for batch in log.read("t", meta=True))


@contextmanager
def connected(log: Log) -> Iterator[tuple[Feed, FeedSender]]:
    log.create_topic("t", SCHEMA)
    with Feed(log, "t", "127.0.0.1:0") as feed, FeedSender(log, "t", feed.address) as sender:
        yield feed, sender


def drained(feed: Feed, log: Log) -> list[pa.RecordBatch]:
    batches, deadline = list[pa.RecordBatch](), time.monotonic() + 120
    while not feed.position.passed(log.resolve("t", "latest")):
        assert time.monotonic() < deadline
        batches += feed.poll(0.05)
    return batches


@examples(25)
@given(st.integers(0, 1 << 30), st.sampled_from([0.0, 0.3, 1.0]), st.booleans())
def test_what_comes_out_is_what_the_log_has(seed: int, loss: float, altered: bool) -> None:
    chance = random.Random(seed)
    network = LossyNetwork(chance)
    with headwater.open("memory:") as log:
        log.create_topic("t", SCHEMA, partitions=2)
        batches = []
        with (
            log.producer("t") as producer,
            FeedSender(log, "t", network.address) as sender,
            Feed(log, "t", "127.0.0.1:0") as feed,
        ):
            for turn in range(4):
                new = {"more": "column"} if altered and turn == 3 else {}
                sent = rows(chance, chance.choice([1, 5, 60]), turn * 100)
                producer.send_batch([{**row, **new} for row in sent])
                producer.flush()
                if altered and turn == 2:
                    log.alter_topic("t", schema=SCHEMA + ", more STRING")
                sender.send_new()
                sender.beat()
                network.pass_on(feed.address, loss=loss)
                batches += feed.poll(0)
            batches += drained(feed, log)
            found = by_partition(batches)
            assert {
                number: [{**dict.fromkeys(expected[0]), **row} for row in found[number]]
                for number, expected in stored(log).items()
            } == stored(log)
    network.close()


def test_on_a_good_network_nothing_has_to_be_fetched() -> None:
    with headwater.open("memory:") as log, connected(log) as (feed, sender):
        with log.producer("t") as producer:
            producer.send_batch([{"id": number} for number in range(500)])
        sender.send_new()
        batches, deadline = list[pa.RecordBatch](), time.monotonic() + 120
        while sum(map(len, batches)) < 500 and time.monotonic() < deadline:
            batches += feed.poll(0.05)
        assert by_partition(batches) == stored(log)
        assert feed.counts.to_dict()["received"] == 500


def test_a_datagram_of_a_partition_that_the_log_has_not_is_passed_over() -> None:
    with headwater.open("memory:") as log, connected(log) as (feed, sender):
        for partition in range(1, 100):
            sender._send(FeedDatagram(HEARTBEAT, partition, 7, 7))
        assert feed.poll(0.1) == []
        assert list(feed.position.offsets) == [0]


def test_a_feed_goes_on_where_another_has_ended() -> None:
    with headwater.open("memory:") as log:
        log.create_topic("t", SCHEMA)
        with log.producer("t") as producer:
            producer.send_batch([{"id": number} for number in range(10)])
        with Feed(log, "t", "127.0.0.1:0", start=4) as first:
            batches = drained(first, log)
            assert by_partition(batches)[0] == stored(log)[0][4:]
        with Feed(log, "t", "127.0.0.1:0", start=first.position) as second:
            assert second.poll(0.05) == []


def test_deletions_of_a_compacted_topic_come_from_the_log() -> None:
    with headwater.open("memory:") as log:
        log.create_topic("t", "id BIGINT, name STRING", key="id", cleanup="compact")
        with (
            log.producer("t") as producer,
            Feed(log, "t", "127.0.0.1:0") as feed,
            FeedSender(log, "t", feed.address) as sender,
        ):
            producer.send({"id": 1, "name": "a"})
            producer.delete(1)
            producer.flush()
            sender.send_new()
            deleted = [
                value for batch in drained(feed, log) for value in batch.column("_deleted").to_pylist()
            ]
            assert deleted == [False, True]
