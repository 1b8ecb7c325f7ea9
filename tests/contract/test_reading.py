from __future__ import annotations

import threading
import time
from datetime import UTC, datetime, timedelta

import pytest

from contract_kit import Backend, rows_of
from headwater import Log, Position
from headwater.errors import UsageError


@pytest.fixture
def topic(log: Log, name: str) -> str:
    log.create_topic(name, "n BIGINT", partitions=2)
    with log.producer(name) as producer:
        producer.send_batch([{"n": n} for n in range(20)])
    return name


def test_an_empty_topic_reads_as_nothing(log: Log, name: str) -> None:
    log.create_topic(name, "n BIGINT")
    assert list(log.read(name)) == []
    assert log.resolve(name, "latest").offsets == {0: 0}


def test_reading_from_and_to_offsets(log: Log, topic: str) -> None:
    assert [r["n"] for r in rows_of(log, topic, partition=1, start=3, end=6)] == [7, 9, 11]
    assert [r["n"] for r in rows_of(log, topic, partition=0, start=8)] == [16, 18]
    assert rows_of(log, topic, start=10) == []
    assert rows_of(log, topic, start="latest") == []
    assert [r["n"] for r in rows_of(log, topic, start=Position(topic, {0: 9, 1: 8}))] == [18, 17, 19]


def test_reading_from_and_to_times_of_receipt(log: Log, topic: str) -> None:
    time.sleep(0.05)
    between = datetime.now(UTC)
    time.sleep(0.05)
    with log.producer(topic) as producer:
        producer.send_batch([{"n": n} for n in range(100, 104)])
    assert sorted(r["n"] for r in rows_of(log, topic, start=between)) == [100, 101, 102, 103]
    assert len(rows_of(log, topic, end=between)) == 20
    assert rows_of(log, topic, start=datetime.now(UTC) + timedelta(hours=1)) == []
    assert len(rows_of(log, topic, start=datetime(2020, 1, 1, tzinfo=UTC))) == 24


def test_an_unknown_partition_is_refused(log: Log, topic: str) -> None:
    with pytest.raises(UsageError, match="no partition 2"):
        list(log.read(topic, partition=2))


def test_reading_changes_nothing_and_many_read_at_once(backend: Backend, topic: str) -> None:
    before = backend.log.describe(topic)
    results: list[int] = []
    logs = [backend.again() for _ in range(4)]
    threads = [threading.Thread(target=lambda g=g: results.append(len(rows_of(g, topic)))) for g in logs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [20] * 4
    assert backend.log.describe(topic).partitions == before.partitions


def test_the_end_is_taken_when_the_read_is_made(log: Log, topic: str) -> None:
    reading = log.read(topic)
    with log.producer(topic) as producer:
        producer.send({"n": 99})
    assert sum(len(batch) for batch in reading) == 20


def test_a_follower_is_woken_by_another_handle(backend: Backend, topic: str) -> None:
    follower = backend.log.read(topic, start="latest", follow=True)
    seen: list[int] = []

    def follow() -> None:
        for batch in follower:
            seen.extend(batch.column("n").to_pylist())
            if 101 in seen:
                return

    thread = threading.Thread(target=follow)
    thread.start()
    with backend.again().producer(topic) as producer:
        producer.send({"n": 100})
        producer.flush()
        producer.send({"n": 101})
    thread.join(30)
    assert not thread.is_alive()
    assert sorted(seen) == [100, 101]


def test_a_follower_that_is_told_to_stop_ends_without_another_record(log: Log, topic: str) -> None:
    stop = threading.Event()
    follower = log.read(topic, start="latest", follow=stop)
    with log.producer(topic) as producer:
        producer.send({"n": 100})
    assert next(follower).column("n").to_pylist() == [100]
    stop.set()
    assert list(follower) == []


def test_verify_finds_nothing_wrong(log: Log, topic: str) -> None:
    result = log.verify(topic)
    assert result.ok
    assert result.records == 20


def test_a_follower_of_all_partitions_sees_those_that_are_added(log: Log, topic: str) -> None:
    follower = log.read(topic, start="latest", follow=True)
    log.alter_topic(topic, partitions=3)
    with log.producer(topic) as producer:
        producer.send_batch([{"n": n} for n in range(300, 306)])
    seen: list[int] = []
    while len(seen) < 6:
        seen += next(follower).column("n").to_pylist()
    assert sorted(seen) == list(range(300, 306))


@pytest.mark.parametrize("start", ["bogus", None, 1.5, True, -1, Position("other", {0: 1})])
def test_what_is_no_place_in_the_topic_is_refused(log: Log, topic: str, start: object) -> None:
    with pytest.raises(UsageError):
        log.read(topic, start=start)  # type: ignore[arg-type]
    with pytest.raises(UsageError):
        log.resolve(topic, start)  # type: ignore[arg-type]
    with pytest.raises(UsageError):
        log.consumer(topic, f"g-{topic}", start=start)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="no partition"):
        log.resolve(topic, Position(topic, {7: 1}))
    with pytest.raises(UsageError, match="no partition"):
        log.read(topic, partition="0")  # type: ignore[arg-type]
