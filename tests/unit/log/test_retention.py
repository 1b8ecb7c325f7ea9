from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from headwater.errors import OffsetLost
from headwater.log.embedded import EmbeddedLog


@pytest.fixture
def log(tmp_path: Path) -> Iterator[EmbeddedLog]:
    with EmbeddedLog(tmp_path / "log", segment_bytes=2000) as log:
        yield log


def fill(log: EmbeddedLog, batches: int = 20, first: int = 0) -> None:
    with log.producer("t") as producer:
        for start in range(first, first + batches):
            producer.send_batch([{"n": n} for n in range(start * 10, start * 10 + 10)])


def numbers(log: EmbeddedLog, **how: Any) -> list[int]:
    return [n for batch in log.read("t", **how) for n in batch.column("n").to_pylist()]


def test_retention_by_size_deletes_whole_segments_oldest_first(log: EmbeddedLog) -> None:
    log.create_topic("t", "n BIGINT", retention_bytes=5000)
    fill(log, 40)
    log.compact("t")
    info = log.describe("t").partitions[0]
    assert info.earliest > 0
    assert info.size <= 5000 + 2500
    assert numbers(log) == list(range(info.earliest, 400))


def test_retention_by_time_deletes_what_is_old_and_keeps_what_is_new(log: EmbeddedLog) -> None:
    log.create_topic("t", "n BIGINT", retention="300 milliseconds")
    fill(log, 20)
    time.sleep(0.4)
    fill(log, 2, first=20)
    log.compact("t")
    left = numbers(log)
    assert left == list(range(left[0], 220))
    assert left[0] > 0
    time.sleep(0.4)
    log.compact("t")
    assert numbers(log) == []
    assert log.resolve("t", "earliest").offsets == {0: 220}
    fill(log, 1, first=22)
    assert numbers(log) == list(range(220, 230))


def test_retention_is_applied_while_producing(log: EmbeddedLog) -> None:
    log.create_topic("t", "n BIGINT", retention_bytes=5000)
    fill(log, 200)
    log.close()
    assert log.describe("t").size < 20_000


def test_a_consumer_that_fell_out_of_retention_is_told_how_much_it_missed(log: EmbeddedLog) -> None:
    log.create_topic("t", "n BIGINT", retention_bytes=5000)
    fill(log, 1)
    with log.consumer("t", "slow") as slow, log.consumer("t", "quick") as quick:
        assert slow.poll(1) is not None
        slow.commit()
        with EmbeddedLog(log.root, segment_bytes=2000) as writer:  # closing waits for its retention
            fill(writer, 60, first=1)
        while quick.poll(0.1) is not None:
            quick.commit()
        slow.close()
        log.compact("t")
        earliest = log.describe("t").partitions[0].earliest
        with log.consumer("t", "slow") as again, pytest.raises(OffsetLost) as caught:
            again.poll(1)
        assert (caught.value.missed, caught.value.earliest) == (earliest - 10, earliest)
        assert "headwater seek" in str(caught.value)
        fill(log, 1, first=61)
        batch = quick.poll(1)
        assert batch is not None  # no other consumer notices
    log.compact("t")
    earliest = log.seek("slow", "t", "earliest").offsets[0]
    with log.consumer("t", "slow") as again:
        batch = again.poll(1)
        assert batch is not None
        assert batch.column("n")[0].as_py() == earliest


def test_an_archive_keeps_everything_readable(log: EmbeddedLog) -> None:
    log.create_topic("t", "n BIGINT", retention_bytes=5000, archive="old")
    fill(log, 20)
    middle = datetime.now().astimezone()
    fill(log, 20, first=20)
    with_meta = [row for b in log.read("t", meta=True) for row in b.to_pylist()]
    log.compact("t")
    files = list((log.root / "old/t/0").glob("*.parquet"))
    assert files
    assert min(int(p.stem) for p in (log.root / "topics/t/0").glob("*.log")) > 100
    assert numbers(log) == list(range(400))
    assert [row for b in log.read("t", meta=True) for row in b.to_pylist()] == with_meta
    assert numbers(log, start=95, end=105) == list(range(95, 105))
    assert numbers(log, start=middle) == list(range(200, 400))
    assert log.describe("t").partitions[0].earliest == 0


def test_a_consumer_reads_on_from_the_archive_into_the_log(log: EmbeddedLog) -> None:
    log.create_topic("t", "n BIGINT", retention_bytes=5000, archive="old")
    fill(log, 40)
    log.compact("t")
    seen: list[int] = []
    with log.consumer("t", "g") as consumer:
        while (batch := consumer.poll(0.1)) is not None:
            seen += batch.column("n").to_pylist()
            consumer.commit()
    assert seen == list(range(400))
    assert log.lag("g")[0].records == 0


def test_old_records_in_the_archive_have_nulls_in_a_new_column(log: EmbeddedLog) -> None:
    log.create_topic("t", "n BIGINT", retention_bytes=5000, archive="old")
    fill(log, 40)
    log.compact("t")
    log.alter_topic("t", schema="n BIGINT, note STRING")
    assert next(log.read("t")).to_pylist()[0] == {"n": 0, "note": None}
