"""Transactions of other programs: what was aborted is never seen, what is open holds reading back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from headwater import topic as topics
from headwater.log import Log, prefetched
from headwater.log.open import open as open_log
from headwater.log.prefetched import Span
from kafka_kit import begin_transaction, make_topic, polled, produce_at_once, rows, until

pytestmark = pytest.mark.kafka


@pytest.fixture
def log(kafka_broker: str, name: str, tmp_path: Path) -> Iterator[Log]:
    make_topic(kafka_broker, name)
    with open_log(f"kafka://{kafka_broker}") as opened:
        opened.read_as(topics.create(name, "n BIGINT"))
        opened.prefetch_into(tmp_path)
        yield opened


def records(*numbers: int) -> list[dict[str, Any]]:
    return [{"value": b'{"n": %d}' % n, "partition": 0} for n in numbers]


def numbers(batches: list[pa.RecordBatch] | None) -> list[int] | None:
    return None if batches is None else [n for batch in batches for n in batch.column("n").to_pylist()]


def read_ahead(log: Log, name: str, root: Path, start: int = 0) -> tuple[list[int] | None, int]:
    """Return what is found in files that were read ahead, and how far that goes."""
    told = list(log.appended_ranges(name, 0, start))
    end = told[-1].end if told else start
    assert [each.base for each in told] + [end] == [start, *(each.end for each in told)]
    return numbers(prefetched.read(root, Span(name, log.topic(name).id, 0, start, end))), end


def test_records_of_an_aborted_transaction_are_never_seen(
    log: Log, kafka_broker: str, name: str, tmp_path: Path
) -> None:
    produce_at_once(kafka_broker, name, records(0, 1))
    begin_transaction(kafka_broker, name, records(100, 101, 102)).abort_transaction(30)
    begin_transaction(kafka_broker, name, records(2, 3)).commit_transaction(30)
    begin_transaction(kafka_broker, name, records(103)).abort_transaction(30)
    assert until(lambda: log.resolve(name, "latest").offsets == {0: 2 + 4 + 3 + 2})
    end = 11
    assert [row["n"] for row in rows(log, name)] == [0, 1, 2, 3]
    assert [row["_offset"] for row in rows(log, name, meta=True)] == [0, 1, 6, 7]
    assert [row["n"] for row in rows(log, name, start=3)] == [2, 3]  # from amid the aborted ones
    assert read_ahead(log, name, tmp_path) == ([0, 1, 2, 3], end)
    assert read_ahead(log, name, tmp_path, 3) == ([2, 3], end)
    with log.consumer(name, f"g-{name}") as consumer:
        assert [row["n"] for row in polled(consumer, 4)] == [0, 1, 2, 3]
        consumer.poll(1)
        consumer.commit()
        assert consumer.position().offsets == {0: end}
    assert [lag.records for lag in log.lag(f"g-{name}")] == [0]
    assert log.verify(name).ok


def test_an_open_transaction_holds_reading_back_and_nothing_is_skipped(
    log: Log, kafka_broker: str, name: str, tmp_path: Path
) -> None:
    produce_at_once(kafka_broker, name, records(0, 1))
    assert read_ahead(log, name, tmp_path) == ([0, 1], 2)
    following = log.read(name, follow=True)
    assert numbers([next(following)]) == [0, 1]
    with log.consumer(name, f"g-{name}") as consumer:
        assert len(polled(consumer, 2)) == 2
        producer = begin_transaction(kafka_broker, name, records(2, 3))
        produce_at_once(kafka_broker, name, records(4, 5))  # behind what is open
        assert log.resolve(name, "latest").offsets == {0: 2}
        assert [row["n"] for row in rows(log, name)] == [0, 1]
        assert list(log.appended_ranges(name, 0, 2)) == []
        assert consumer.poll(1) is None
        producer.commit_transaction(30)
        assert [row["n"] for row in polled(consumer, 4)] == [2, 3, 4, 5]
    found: list[int] = []
    while len(found) < 4:
        found += next(following).column("n").to_pylist()
    assert found == [2, 3, 4, 5]
    assert until(lambda: log.resolve(name, "latest").offsets == {0: 7})
    assert [row["n"] for row in rows(log, name)] == [0, 1, 2, 3, 4, 5]
    assert read_ahead(log, name, tmp_path, 2) == ([2, 3, 4, 5], 7)
