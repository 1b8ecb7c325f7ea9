from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from headwater.log.embedded import EmbeddedLog


@pytest.fixture
def log(tmp_path: Path) -> Iterator[EmbeddedLog]:
    with EmbeddedLog(tmp_path / "log", segment_bytes=20_000) as log:
        yield log


def latest(log: EmbeddedLog) -> dict[str, int]:
    table: dict[str, int] = {}
    for batch in log.read("t"):
        for row in batch.to_pylist():
            if row["_deleted"]:
                table.pop(row["k"], None)
            else:
                table[row["k"]] = row["n"]
    return table


def offsets(log: EmbeddedLog) -> list[int]:
    return [n for batch in log.read("t", meta=True) for n in batch.column("_offset").to_pylist()]


def test_only_the_newest_of_each_key_stays_at_its_offset(log: EmbeddedLog) -> None:
    log.create_topic("t", "k STRING, n BIGINT", key="k", cleanup="compact")
    with log.producer("t", id="p") as producer:
        for n in range(50):
            producer.send_batch([{"k": f"k{i}", "n": n * 10 + i} for i in range(10)])
    before = [row for b in log.read("t", meta=True) for row in b.to_pylist()]
    log.compact("t")
    after = [row for b in log.read("t", meta=True) for row in b.to_pylist()]
    assert after == before[-10:]
    assert log.resolve("t", "latest").offsets == {0: 500}
    assert log.verify("t").ok
    log.compact("t")
    assert offsets(log) == list(range(490, 500))


def test_disk_usage_follows_the_number_of_keys_not_of_writes(log: EmbeddedLog) -> None:
    log.create_topic("t", "k STRING, n BIGINT", key="k", cleanup="compact")
    sizes = []
    for _ in range(3):
        with log.producer("t") as producer:
            for n in range(100):
                producer.send_batch(pa.table({"k": [f"k{i}" for i in range(100)], "n": [n] * 100}))
        log.compact("t")
        sizes.append(log.describe("t").size)
    assert max(sizes) < 1.2 * min(sizes)
    assert sizes[0] < 10_000


def test_tombstones_go_after_their_time_and_not_before(log: EmbeddedLog) -> None:
    log.create_topic("t", "k STRING, n BIGINT", key="k", cleanup="compact", retention="500 milliseconds")
    with log.producer("t") as producer:
        producer.send({"k": "a", "n": 1})
        producer.send({"k": "b", "n": 2})
        producer.delete("a")
    log.compact("t")
    assert offsets(log) == [1, 2]
    time.sleep(0.6)
    log.compact("t")
    assert offsets(log) == [1]
    assert latest(log) == {"b": 2}


def test_a_composite_key_is_compacted_as_a_whole(log: EmbeddedLog) -> None:
    log.create_topic("t", "a STRING, b BIGINT, n BIGINT", key="a,b", cleanup="compact")
    with log.producer("t") as producer:
        for n in range(3):
            producer.send_batch([{"a": a, "b": b, "n": n} for a in "xy" for b in (1, 2)])
    log.compact("t")
    rows = [(r["a"], r["b"], r["n"]) for batch in log.read("t") for r in batch.to_pylist()]
    assert rows == [("x", 1, 2), ("x", 2, 2), ("y", 1, 2), ("y", 2, 2)]


def test_a_consumer_passes_over_the_gaps_and_its_lag_ends_at_zero(log: EmbeddedLog) -> None:
    log.create_topic("t", "k STRING, n BIGINT", key="k", cleanup="compact", retention="1 microsecond")
    with log.producer("t") as producer:
        for n in range(500):
            producer.send({"k": "one", "n": n})
        producer.delete("one")
    log.compact("t")
    with log.consumer("t", "g") as consumer:
        consumer.poll(0.2)
        assert consumer.position().offsets == {0: 501}
    assert offsets(log) == []
    with log.producer("t") as producer:
        producer.send({"k": "one", "n": 7})
    assert latest(log) == {"one": 7}


@pytest.mark.slow
def test_it_runs_beside_readers_and_writers(log: EmbeddedLog) -> None:
    """Whoever reads on to the end, from whenever, has met the newest record of each key."""
    log.create_topic("t", "k STRING, n BIGINT", key="k", cleanup="compact")
    stop, ending = threading.Event(), threading.Event()
    last = 0
    tables: list[dict[str, int]] = [{} for _ in range(4)]

    def write() -> None:
        nonlocal last
        with log.producer("t") as producer:
            while not stop.is_set():
                last += 1
                producer.send_batch(pa.table({"k": [f"k{i}" for i in range(50)], "n": [last] * 50}))

    def compact() -> None:
        with EmbeddedLog(log.root, segment_bytes=20_000) as other:
            while not stop.is_set():
                other.compact("t")

    def read(table: dict[str, int], delay: float) -> None:
        time.sleep(delay)
        with EmbeddedLog(log.root) as other:
            for batch in other.read("t", follow=True):
                for row in batch.to_pylist():
                    assert row["n"] > table.get(row["k"], -1)
                    table[row["k"]] = row["n"]
                if ending.is_set() and set(table.values()) == {last}:
                    return

    readers = [threading.Thread(target=read, args=(table, i * 1.0)) for i, table in enumerate(tables)]
    others = [threading.Thread(target=work) for work in (write, compact)]
    for thread in readers + others:
        thread.start()
    time.sleep(4)
    stop.set()
    for thread in others:
        thread.join()
    last += 1
    ending.set()
    with log.producer("t") as producer:
        producer.send_batch(pa.table({"k": [f"k{i}" for i in range(50)], "n": [last] * 50}))
    for thread in readers:
        thread.join(60)
    assert tables == [{f"k{i}": last for i in range(50)}] * 4
    assert last > 10
    assert log.verify("t").ok


@pytest.mark.slow
def test_it_happens_by_itself_while_producing(log: EmbeddedLog) -> None:
    log.create_topic("t", "k STRING, n BIGINT", key="k", cleanup="compact")
    with log.producer("t") as producer:
        for n in range(1500):
            producer.send_batch([{"k": f"k{i}", "n": n} for i in range(10)])
    log.close()
    assert (log.describe("t").size or 0) < 1500 * 1000 / 2  # less than half of what was written
    assert latest(log) == {f"k{i}": 1499 for i in range(10)}


def test_it_begins_behind_what_retention_has_deleted(log: EmbeddedLog) -> None:
    log.create_topic("t", "k STRING, n BIGINT", key="k", retention_bytes=40_000)
    with log.producer("t") as producer:
        for n in range(300):
            producer.send_batch([{"k": f"k{i}", "n": n} for i in range(10)])
    log.compact("t")
    assert log.resolve("t", "earliest").offsets[0] > 0
    log.alter_topic("t", cleanup="compact", retention_bytes=None)
    log.compact("t")
    assert latest(log) == {f"k{i}": 299 for i in range(10)}
    assert len(offsets(log)) == 10
    assert log.verify("t").ok
