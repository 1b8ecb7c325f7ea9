"""Records of one partition, wherever they lie: archive, then segments; gaps are passed over."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headwater.errors import OffsetLost
from headwater.log.embedded import EmbeddedLog
from headwater.log.embedded.stream import FAR, RecordReader

COUNT = 20


@pytest.fixture
def log(tmp_path: Path) -> Iterator[EmbeddedLog]:
    with EmbeddedLog(tmp_path / "log", durability="os", segment_bytes=600) as log:
        yield log


def fill(log: EmbeddedLog, **how: Any) -> None:
    log.create_topic("t", "k INT, n INT", key="k", **how)
    with log.producer("t") as producer:
        for n in range(0, COUNT, 2):
            producer.send_batch([{"k": n % 3, "n": n}, {"k": (n + 1) % 3, "n": n + 1}])
            producer.flush()


def reader(log: EmbeddedLog, offset: int) -> RecordReader:
    return log._storage.reader(log._storage.catalog.get("t"), 0, offset, meta=False)


def numbers(log: EmbeddedLog, start: int, end: int) -> list[int]:
    """Return what a reader finds; its offset is always the next one to be read."""
    found: list[int] = []
    reading = reader(log, start)
    while (batch := reading.next(end)) is not None:
        assert len(batch)
        found += batch.column("n").to_pylist()
        assert found[-1] < reading.offset
    reading.close()
    return found


@pytest.mark.parametrize(("start", "end"), [(0, FAR), (5, 6), (7, 19), (COUNT, FAR), (4, 4)])
def test_records_between_two_offsets_are_the_same_in_segments_and_archive(
    log: EmbeddedLog, tmp_path: Path, start: int, end: int
) -> None:
    fill(log)
    wanted = list(range(start, min(end, COUNT)))
    assert numbers(log, start, end) == wanted
    log.alter_topic("t", retention_bytes=700, archive=str(tmp_path / "archive"))
    log.compact("t")
    assert any((tmp_path / "archive").rglob("*.parquet"))
    assert numbers(log, start, end) == wanted
    assert [n for batch in reader(log, start).until(end) for n in batch["n"].to_pylist()] == wanted


def test_gaps_of_compaction_are_passed_over(log: EmbeddedLog) -> None:
    fill(log, cleanup="compact")
    log.compact("t")
    assert numbers(log, 0, FAR) == [17, 18, 19]
    assert numbers(log, 18, FAR) == [18, 19]
    reading = reader(log, 0)
    assert [len(batch) for batch in reading.until(FAR)] == [3]
    assert reading.offset == COUNT


def test_what_arrives_is_there_at_the_next_call_and_nothing_is_waited_for(log: EmbeddedLog) -> None:
    fill(log)
    reading = reader(log, COUNT)
    assert reading.next() is None
    with log.producer("t") as producer:
        producer.send({"k": 1, "n": COUNT})
    batch = reading.next()
    assert batch is not None
    assert batch["n"].to_pylist() == [COUNT]
    assert reading.next() is None
    reading.close()


def test_what_retention_has_removed_without_an_archive_is_an_error_each_time(log: EmbeddedLog) -> None:
    fill(log)
    log.alter_topic("t", retention_bytes=1)
    log.compact("t")
    reading = reader(log, 0)
    for _ in range(2):
        with pytest.raises(OffsetLost) as lost:
            reading.next()
        assert lost.value.missed == lost.value.earliest > 0
    reading.close()
