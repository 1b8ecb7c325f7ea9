"""Records as a queue reads them: onwards, and here and there."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from headwater.log.embedded import EmbeddedLog
from headwater.log.embedded.queue import records as module
from headwater.log.embedded.queue.records import PartitionRecords, record_rows


@pytest.fixture
def partition(log: EmbeddedLog) -> Iterator[PartitionRecords]:
    for first in range(0, 60, 20):
        with log.producer("t") as producer:
            producer.send_batch([{"k": "a", "n": n, "p": 0, "at": None} for n in range(first, first + 20)])
    stored = log._storage.catalog.get("t")
    found = PartitionRecords(
        lambda offset: log._storage.reader(stored, 0, offset, meta=True), lambda: log.topic("t").schema.names
    )
    yield found
    found.close()


def test_records_follow_each_other_from_any_offset_on(partition: PartitionRecords) -> None:
    seen, offset = list[int](), 0
    while (batch := partition.following(offset, 7)) is not None:
        seen += batch.column("n").to_pylist()
        offset = seen[-1] + 1
    assert seen == list(range(60))
    again = partition.following(33, 2)
    assert again is not None and again.column("n").to_pylist() == [33, 34]
    assert partition.following(60, 1) is None


def test_records_lie_anywhere(partition: PartitionRecords, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RECENT_BYTES", 1)  # nothing is kept but the last
    found = partition.at([50, 3, 21, 99])
    assert {offset: batch.column("n")[0].as_py() for offset, batch in found.items()} == {3: 3, 21: 21, 50: 50}


def test_what_retention_has_removed_is_missing(log: EmbeddedLog, partition: PartitionRecords) -> None:
    with log.producer("t") as producer:
        for n in range(60, 100):
            producer.send({"k": "x" * 200, "n": n, "p": 0, "at": None})
            producer.flush()
    log.alter_topic("t", retention_bytes=8000)
    log.compact("t")
    earliest = log.resolve("t", "earliest").offsets[0]
    assert earliest > 0
    assert list(partition.at([0, earliest, 99])) == [earliest, 99]


def test_headers_and_times_come_along(log: EmbeddedLog) -> None:
    with log.producer("t") as producer:
        producer.send({"k": "a", "n": 1, "p": 0, "at": None}, headers={"x": "y"})
        producer.send({"k": "a", "n": 2, "p": 0, "at": None})
    [batch] = log.read("t", meta=True)
    one, two = record_rows(batch, ["n"])
    assert (one.value, one.headers, one.offset) == ({"n": 1}, [("x", b"y")], 0)
    assert (two.value, two.headers) == ({"n": 2}, ())
    assert one.received > 0
