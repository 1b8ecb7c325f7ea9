"""Offsets by time of receipt."""

from __future__ import annotations

import struct
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from headwater.log.embedded import EmbeddedLog
from headwater.log.embedded.partition import segment


def rows(log: EmbeddedLog, **how: Any) -> list[dict[str, Any]]:
    return [row for batch in log.read("t", meta=True, **how) for row in batch.to_pylist()]


def test_a_time_means_the_same_before_and_after_compaction(tmp_path: Path) -> None:
    log = EmbeddedLog(tmp_path / "log")
    log.create_topic("t", "k STRING, n BIGINT", key="k", cleanup="compact")
    with log.producer("t") as producer:
        for n in range(20):
            producer.send_batch([{"k": f"k{n % 12}", "n": n}])
            time.sleep(0.002)
    before = rows(log)
    log.compact("t")
    kept = {row["_offset"] for row in rows(log)}
    assert kept == set(range(8, 20))
    for at in (row["_received"] for row in before):
        assert rows(log, start=at) == [r for r in before if r["_offset"] in kept and r["_received"] >= at]
        assert rows(log, end=at) == [r for r in before if r["_offset"] in kept and r["_received"] < at]
    assert log.describe("t").partitions[0].oldest == before[8]["_received"]


def test_the_lag_in_a_compacted_topic_is_the_age_of_the_next_record(tmp_path: Path) -> None:
    log = EmbeddedLog(tmp_path / "log")
    log.create_topic("t", "k STRING, n BIGINT", key="k", cleanup="compact")
    with log.producer("t") as producer:
        producer.send_batch([{"k": "a", "n": 1}])
        time.sleep(0.3)
        producer.send_batch([{"k": "b", "n": 1}])
    log.compact("t")
    log.seek("g", "t", "earliest")
    assert log.lag("g")[0].behind.total_seconds() >= 0.3


@pytest.mark.parametrize(
    "line", [(500, 7, 1), (500, -8, 1), (500, 1 << 40, 1), (500, 0, 1), (0, 0, 1), (500, -(1 << 63), 0)]
)
def test_a_wrong_line_in_the_index_is_ignored(tmp_path: Path, line: tuple[int, int, int]) -> None:
    log = EmbeddedLog(tmp_path / "log")
    log.create_topic("t", "n BIGINT")
    with log.producer("t") as producer:
        for n in range(10):
            producer.send_batch(pa.table({"n": range(n * 100, n * 100 + 100)}))
    index = log.root / "topics/t/0" / "00000000000000000000.idx"
    with open(index, "ab") as file:
        file.write(struct.pack("<qqq", *line))
    fresh = EmbeddedLog(log.root)
    middle = rows(fresh)[500]["_received"]
    assert [row["n"] for row in rows(fresh, start=550)] == list(range(550, 1000))
    assert [row["n"] for row in rows(fresh, start=middle)] == list(range(500, 1000))


def test_an_earlier_line_of_the_index_serves_where_a_later_one_is_wrong(tmp_path: Path) -> None:
    log = EmbeddedLog(tmp_path / "log")
    log.create_topic("t", "n BIGINT")
    with log.producer("t") as producer:
        for n in range(10):
            producer.send_batch(pa.table({"n": range(n * 100, n * 100 + 100)}))
    only = segment.listing(log.root / "topics/t/0")[0]
    only.index_path.unlink(missing_ok=True)
    with open(only.path, "rb") as file:
        size = only.path.stat().st_size
        frames = [(at, h) for at, h in segment.walk(file.fileno(), 0, size) if isinstance(h, segment.Header)]
        at, header = next((at, h) for at, h in frames if h.base == 300)
        segment.add_entry(only, segment.IndexEntry(300, at, header.received))
        segment.add_entry(only, segment.IndexEntry(400, at + 1, header.received))
        segment.add_entry(only, segment.IndexEntry(450, at, header.received))
        assert segment.locate(file.fileno(), only, size, offset=900) == at
        assert segment.locate(file.fileno(), only, size, offset=299) == 0
