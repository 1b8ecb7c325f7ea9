"""A topic as Spark's target: a task or a micro-batch that comes again changes nothing. Without Spark."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from headwater.engine.exchange.blobs import encode
from headwater.engine.source.placements import Placements
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


@pytest.fixture
def spread(tmp_path: Path) -> dict[str, str]:
    """Options of a topic whose rows are placed by a key."""
    url = f"file:{tmp_path / 'spread'}"
    with open_log(url) as log:
        log.create_topic("copies", "id BIGINT", key="id", partitions=2)
    return {"url": url, "topic": "copies"}


def widen(options: dict[str, str], partitions: int) -> None:
    with open_log(options["url"]) as log:
        log.alter_topic("copies", partitions=partitions)


def test_a_micro_batch_that_comes_again_goes_where_it_went_though_the_topic_has_got_partitions(
    spread: dict[str, str],
) -> None:
    for number in (0, 1, 2):
        rows = handed(*range(100 * number, 100 * number + 100))
        StreamWriter(spread).commit([rows], number)
        widen(spread, 3 + number)
        StreamWriter(spread).commit([rows], number)
    assert sorted(stored(spread)) == list(range(300))
    with open_log(spread["url"]) as log:
        ends = log.resolve("copies", "latest").offsets
    assert [end > 0 for end in ends.values()] == [True] * 4 + [False]  # used from the next micro-batch on


def test_the_rest_of_a_micro_batch_goes_where_it_would_have_gone(
    spread: dict[str, str], tmp_path: Path
) -> None:
    other = {**spread, "url": f"file:{tmp_path / 'other'}"}
    with open_log(other["url"]) as log:
        log.create_topic("copies", "id BIGINT", key="id", partitions=2)
    StreamWriter(other).commit([handed(*range(100))], 0)
    with open_log(other["url"]) as log:
        whole = [row for batch in log.read("copies", meta=True) for row in batch.to_pylist()]
    with open_log(spread["url"]) as log:  # as a crash between two partitions leaves it
        Placements(log, "copies", "q").note(0, 2)
        with log.producer("copies", id="spark.q") as producer:
            for row in whole:
                if row["_partition"] == 1:
                    producer.send({"id": row["id"]}, sequence=row["_sequence"])
    widen(spread, 5)
    StreamWriter(spread).commit([handed(*range(100))], 0)
    with open_log(spread["url"]) as log:
        now = [row for batch in log.read("copies", meta=True) for row in batch.to_pylist()]
    assert sorted((row["id"], row["_partition"]) for row in now) == sorted(
        (row["id"], row["_partition"]) for row in whole
    )


def test_a_micro_batch_of_which_nobody_knows_how_it_was_placed_is_refused(spread: dict[str, str]) -> None:
    StreamWriter(spread).commit([handed(1)], 0)
    with open_log(spread["url"]) as log:
        log.delete_topic("copies.placements")
    with pytest.raises(HeadwaterError, match="not known how micro-batch 0 was placed"):
        StreamWriter(spread).commit([handed(1)], 0)
    StreamWriter(spread).commit([handed(2)], 1)  # which is not there yet
    assert sorted(stored(spread)) == [1, 2]


def test_a_topic_that_was_made_again_is_placed_by_its_own_partitions(spread: dict[str, str]) -> None:
    widen(spread, 8)
    StreamWriter(spread).commit([handed(*range(100))], 0)
    with open_log(spread["url"]) as log:
        log.delete_topic("copies")
        log.create_topic("copies", "id BIGINT", key="id", partitions=2)
    for _ in range(2):
        StreamWriter(spread).commit([handed(*range(100))], 1)
    assert sorted(stored(spread)) == list(range(100))


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
