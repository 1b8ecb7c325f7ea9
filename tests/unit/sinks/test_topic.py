"""Derived topics: sequence numbers, tombstones, marks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

import headwater
from headwater import Log
from headwater.errors import Fenced, RowError, UsageError
from headwater.sinks import Batch
from headwater.sinks.topic import TopicSink


@pytest.fixture
def log() -> Iterator[Log]:
    with headwater.open("memory:") as log:
        yield log


def read(log: Log, topic: str, **options: Any) -> list[dict[str, Any]]:
    return [row for batch in log.read(topic, **options) for row in batch.to_pylist()]


def orders(*rows: tuple[int, str | None, bool]) -> pa.Table:
    ids, items, deleted = zip(*rows, strict=True)
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "item": pa.array(items, pa.string()),
            "_deleted": pa.array(deleted, pa.bool_()),
        }
    )


def test_a_row_is_numbered_by_its_batch_and_its_place(log: Log) -> None:
    log.create_topic("orders", "id BIGINT")
    with TopicSink(log, "orders", "node") as sink:
        sink.begin()
        sink.commit(Batch(1, pa.table({"id": [7, 8]})))
        sink.commit(Batch(5, pa.table({"id": [9]})))
    numbers = [(row["_sequence"], row["_producer"]) for row in read(log, "orders", meta=True)]
    assert numbers == [(1 << 32, "node"), ((1 << 32) + 1, "node"), (5 << 32, "node")]


def test_begin_names_the_last_batch_that_must_be_whole(log: Log) -> None:
    log.create_topic("orders", "id BIGINT")
    for number, known in ((0, -1), (1, -1), (2, 0)):
        with TopicSink(log, "orders", "node") as sink:
            assert sink.begin() == known
            assert sink.commit(Batch(number, pa.table({"id": [number]})))


def test_a_batch_that_reached_only_some_partitions_is_completed_by_its_replay(log: Log) -> None:
    log.create_topic("orders", "id BIGINT", key="id", partitions=4)
    batch = Batch(3, pa.table({"id": list(range(50))}))
    with log.producer("orders", id="node") as producer:  # as if it had died between two partitions
        lucky = [row["id"] for row in _placed(log, batch) if row["_partition"] == 2]
        for number in lucky:
            producer.send({"id": number}, sequence=(3 << 32) + number)
    with TopicSink(log, "orders", "node") as sink:
        assert sink.begin() < 3
        sink.commit(batch)
    assert sorted(row["id"] for row in read(log, "orders")) == list(range(50))


@pytest.mark.parametrize("key", ["id", None])
@pytest.mark.parametrize("receipt", ["of the batch before", "of no batch"])
def test_a_replay_goes_where_its_batch_went_though_the_topic_has_more_partitions(
    log: Log, key: str | None, receipt: str
) -> None:
    log.create_topic("orders", "id BIGINT", key=key, partitions=3)
    batches = [Batch(n, pa.table({"id": list(range(100 * n, 100 * n + 50))})) for n in range(4)]
    with TopicSink(log, "orders", "node") as sink:
        sink.begin()
        stored = sink.receipt()
        if receipt == "of the batch before":
            sink.commit(batches[0])
            stored = sink.receipt()
        sink.commit(batches[1])  # and then it was killed, before its receipt was stored
    log.alter_topic("orders", partitions=8)
    with TopicSink(log, "orders", "node") as sink:
        sink.begin()
        assert sink.resume(stored) is None
        assert not sink.commit(Batch(1, batches[1].rows.take(list(range(49, -1, -1)))))
        later = sink.receipt()
        sink.commit(batches[2])
    rows = read(log, "orders", meta=True)
    wanted = [0, 1, 2] if receipt == "of the batch before" else [1, 2]
    assert sorted(row["id"] for row in rows) == [i for n in wanted for i in batches[n].rows["id"].to_pylist()]
    assert {row["_partition"] for row in rows if row["id"] < 200} <= {0, 1, 2}
    assert {row["_partition"] for row in rows if row["id"] >= 200} & {3, 4, 5, 6, 7}, "all are used then"
    assert len(headwater.Position.parse(later).offsets) == 8


def test_side_rows_stay_in_the_first_partition(log: Log) -> None:
    log.create_topic("orders", "id BIGINT", partitions=3)
    with TopicSink(log, "orders", "node", partitions=1) as sink:
        sink.begin()
        sink.commit(Batch(0, pa.table({"id": [1, 2, 3]})))
    assert {row["_partition"] for row in read(log, "orders", meta=True)} == {0}


def _placed(log: Log, batch: Batch) -> list[dict[str, Any]]:
    log.create_topic("elsewhere", "id BIGINT", key="id", partitions=4)
    with log.producer("elsewhere") as producer:
        producer.send_batch(batch.rows)
    return read(log, "elsewhere", meta=True)


def test_deletions_become_tombstones_in_their_place(log: Log) -> None:
    log.create_topic("orders", "id BIGINT, item STRING NOT NULL", key="id", cleanup="compact")
    rows = orders((1, "tea", False), (1, None, True), (2, "rum", False), (3, None, True), (1, "gin", False))
    for _ in range(2):
        with TopicSink(log, "orders", "node") as sink:
            sink.begin()
            sink.commit(Batch(0, rows))
    assert read(log, "orders") == rows.to_pylist()


def test_free_json_and_nested_values_survive_beside_deletions(log: Log) -> None:
    schema = "id BIGINT, free VARIANT, tags MAP<STRING, ARRAY<INT>>"
    log.create_topic("orders", schema, key="id", cleanup="compact")
    rows = pa.table(
        {
            "id": [1, 2],
            "free": ['{"a":[1,"x"]}', None],
            "tags": pa.array([[("k", [1])], None], pa.map_(pa.string(), pa.list_(pa.int32()))),
            "_deleted": [False, True],
        }
    )
    with TopicSink(log, "orders", "node") as sink:
        sink.begin()
        sink.commit(Batch(0, rows))
    assert read(log, "orders") == rows.to_pylist()


def test_only_a_compacted_topic_takes_deletions(log: Log) -> None:
    log.create_topic("orders", "id BIGINT, item STRING", key="id")
    with TopicSink(log, "orders", "node") as sink:
        sink.begin()
        with pytest.raises(UsageError, match="is not compacted"):
            sink.commit(Batch(0, orders((1, None, True))))
        assert sink.commit(Batch(0, orders((1, "tea", False))))
    assert read(log, "orders") == [{"id": 1, "item": "tea"}]


@pytest.mark.parametrize(
    "rows",
    [
        orders((1, "tea", False), (2, None, False), (3, None, True)),
        orders((1, "tea", False), (None, None, True)),  # type: ignore[arg-type]
        pa.table({"item": ["tea"], "_deleted": [True]}),
    ],
)
def test_a_bad_row_keeps_the_whole_batch_out(log: Log, rows: pa.Table) -> None:
    log.create_topic("orders", "id BIGINT, item STRING NOT NULL", key="id", cleanup="compact")
    with TopicSink(log, "orders", "node") as sink:
        sink.begin()
        with pytest.raises(RowError):
            sink.commit(Batch(0, rows))
        assert sink.commit(Batch(0, orders((1, "tea", False))))
    assert len(read(log, "orders")) == 1


def test_the_clock_goes_on_though_nothing_is_emitted(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    log.create_topic("orders", "id BIGINT, at TIMESTAMP", event_time="at")
    marks: list[int] = []
    monkeypatch.setattr("headwater.log.producer.Producer.mark", lambda _, before: marks.append(before))
    with TopicSink(log, "orders", "node") as sink:
        sink.begin()
        for number, clock in enumerate((None, 5, 5, 9)):
            sink.commit(Batch(number, pa.table({}), watermark=clock))
    assert marks == [5, 9]


def test_a_topic_without_event_time_gets_no_marks(log: Log) -> None:
    log.create_topic("orders", "id BIGINT")
    with TopicSink(log, "orders", "node") as sink:
        sink.begin()
        assert sink.commit(Batch(0, pa.table({"id": [1]}), watermark=5))


def test_an_older_runner_is_fenced_even_where_it_has_only_its_clock_to_tell(log: Log) -> None:
    log.create_topic("orders", "id BIGINT, at TIMESTAMP", event_time="at")
    with TopicSink(log, "orders", "node") as first, TopicSink(log, "orders", "node") as second:
        first.begin()
        second.begin()
        with pytest.raises(Fenced):
            first.commit(Batch(0, pa.table({}), watermark=5))


def test_a_sink_begins_before_it_commits(log: Log) -> None:
    log.create_topic("orders", "id BIGINT")
    with TopicSink(log, "orders", "node") as sink, pytest.raises(UsageError, match="has not begun"):
        sink.commit(Batch(0, pa.table({"id": [1]})))


@pytest.mark.parametrize("deleted", [True, False])
@pytest.mark.parametrize("free", ['{"a":12345678901234567890123}', "1.00000000000000000001", '[null, "x"]'])
def test_free_json_stays_as_it_is_beside_deletions(log: Log, free: str, deleted: bool) -> None:
    log.create_topic("things", "id BIGINT, free VARIANT", key="id", cleanup="compact")
    with TopicSink(log, "things", "node") as sink:
        sink.begin()
        sink.commit(Batch(0, pa.table({"id": [1, 2], "free": [free, None], "_deleted": [False, deleted]})))
    assert [row["free"] for row in read(log, "things")] == [free, None]
