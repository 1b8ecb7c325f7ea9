"""A topic as Spark's target: a task or a micro-batch that comes again changes nothing. Without Spark."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from headwater.engine.exchange.blobs import encode
from headwater.engine.source.writer import BatchWriter, Handed, StreamWriter
from headwater.errors import HeadwaterError
from headwater.log import Log
from headwater.log.open import open as open_log


@pytest.fixture
def options(tmp_path: Path) -> dict[str, str]:
    url = f"file:{tmp_path}"
    with open_log(url) as log:
        log.create_topic("copies", "id BIGINT")
    return {"url": url, "topic": "copies"}


def handed(*ids: int) -> Handed:
    return Handed("q", encode(pa.table({"id": pa.array(ids, pa.int64())})))


def stored(options: dict[str, str]) -> list[int]:
    with open_log(options["url"]) as log:
        return _ids(log)


def _ids(log: Log) -> list[int]:
    return [row["id"] for batch in log.read("copies") for row in batch.to_pylist()]


def test_a_micro_batch_that_comes_again_is_appended_once(options: dict[str, str]) -> None:
    for number in (0, 1, 1):
        StreamWriter(options).commit([handed(10 * number), handed(10 * number + 1)], number)
    assert stored(options) == [0, 1, 10, 11]


def test_a_micro_batch_before_the_newest_is_refused(options: dict[str, str]) -> None:
    for number in (0, 1):
        StreamWriter(options).commit([handed(number)], number)
    with pytest.raises(HeadwaterError, match="older than what it has written"):
        StreamWriter(options).commit([handed(0)], 0)
    assert stored(options) == [0, 1]


def test_tasks_write_nothing_by_themselves_and_one_without_rows_hands_none(options: dict[str, str]) -> None:
    writer = BatchWriter(options)
    rows = pa.record_batch({"id": pa.array([1, 2], pa.int64())})
    messages = [writer.write(iter([rows])), writer.write(iter([rows.slice(0, 0)])), None]
    assert stored(options) == []
    writer.commit(messages)
    assert stored(options) == [1, 2]


def test_rows_of_no_known_query_are_refused(options: dict[str, str]) -> None:
    with pytest.raises(HeadwaterError, match="of which query"):
        StreamWriter(options).write(iter(()))
