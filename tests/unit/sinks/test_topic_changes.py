"""Rows and tombstones that are appended as Arrow: the same as one by one, by ``send`` and ``delete``."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import orjson
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import headwater
from headwater import Log
from headwater.errors import RowError, UsageError
from headwater.sinks import Batch
from headwater.sinks.row_order import replay_order
from headwater.sinks.topic import TopicSink
from soaking import examples

SCHEMA = (
    "id BIGINT, part STRING NOT NULL, item STRING NOT NULL, free VARIANT, tags MAP<STRING, ARRAY<INT>>, "
    "place STRUCT<city: STRING NOT NULL>, at TIMESTAMP"
)
TYPES = {
    "id": pa.int32(),  # cast to the topic's
    "part": pa.string(),
    "item": pa.string(),
    "free": pa.string(),
    "tags": pa.map_(pa.string(), pa.list_(pa.int32())),
    "place": pa.struct({"city": pa.string()}),
    "at": pa.timestamp("ms", "Europe/Berlin"),
    "_deleted": pa.bool_(),
}
SETTINGS: dict[str, Any] = {"key": "id,part", "event_time": "at", "cleanup": "compact"}
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)

texts = st.text(max_size=3)
times = st.datetimes(datetime(1950, 1, 1), datetime(2100, 1, 1)).map(
    lambda at: at.replace(microsecond=at.microsecond // 1000 * 1000, tzinfo=UTC)
)
live = st.fixed_dictionaries(
    {
        "id": st.integers(0, 5),
        "part": st.sampled_from("ab"),
        "item": texts,
        "free": st.none() | st.sampled_from(['{"a":[1,"x"]}', "1.0", '"text"']),
        "tags": st.none() | st.lists(st.tuples(texts, st.lists(st.integers(0, 9), max_size=2)), max_size=1),
        "place": st.none() | texts.map(lambda city: {"city": city}),
        "at": st.none() | times,
        "_deleted": st.sampled_from([False, None]),
    }
)
gone = st.fixed_dictionaries(
    {
        "id": st.integers(0, 5),
        "part": st.sampled_from("ab"),
        "item": st.none() | texts,
        "free": st.sampled_from([None, "no JSON"]),  # what a deleted row holds is not looked at
        "tags": st.none(),
        "place": st.none(),
        "at": st.none() | times,
        "_deleted": st.just(True),
    }
)


def one_by_one(log: Log, rows: pa.Table, first: int) -> None:
    """Send rows and tombstones in their order, as anybody can."""
    with log.producer("plain", id="node") as producer:
        for number, row in enumerate(replay_order(rows, log.topic("plain")).to_pylist(), first):
            if row.pop("_deleted"):
                producer.delete((row["id"], row["part"]), occurred=row["at"], sequence=number)
            else:
                free = None if row["free"] is None else orjson.loads(row["free"])
                producer.send({**row, "free": free}, sequence=number)


def stored(log: Log, topic: str) -> list[dict[str, Any]]:
    rows = [row for batch in log.read(topic, meta=True) for row in batch.to_pylist()]
    return [
        {name: value for name, value in row.items() if name not in ("_sent", "_received")} for row in rows
    ]


@examples(60)
@given(st.lists(live | gone, min_size=1, max_size=12), st.sampled_from([1, 3]), st.booleans())
def test_changes_are_stored_as_if_they_had_been_sent_one_by_one(
    rows: list[dict[str, Any]], partitions: int, timed: bool
) -> None:
    table = pa.table({name: pa.array([row[name] for row in rows], kind) for name, kind in TYPES.items()})
    settings = SETTINGS if timed else {**SETTINGS, "event_time": None}
    with headwater.open("memory:") as log:
        for topic in ("plain", "fast"):
            log.create_topic(topic, SCHEMA, partitions=partitions, **settings)
        one_by_one(log, table, 7 << 32)
        for _ in range(2):
            with TopicSink(log, "fast", "node") as sink:
                sink.begin()
                sink.commit(Batch(7, table))
        expected = stored(log, "plain")
        if not timed:  # nobody asks a sink when rows of such a topic were deleted
            expected = [{**row, "_occurred": None} for row in expected]
        assert stored(log, "fast") == expected
        for partition in range(partitions):
            plain, fast = (
                [s.newest for s in log.appended_ranges(t, partition, 0)] for t in ("plain", "fast")
            )
            assert max(filter(None, plain), default=None) == max(filter(None, fast), default=None)


def test_a_batch_with_deletions_is_one_append(tmp_path: Any) -> None:
    rows = pa.table({"id": range(100_000), "_deleted": [n % 2 == 0 for n in range(100_000)]})
    with headwater.open(f"file:{tmp_path}", durability="os") as log:
        log.create_topic("orders", "id BIGINT", key="id", cleanup="compact")
        with TopicSink(log, "orders", "node") as sink:
            sink.begin()
            sink.commit(Batch(0, rows))
        assert len({each.received for each in log.appended_ranges("orders", 0, 0)}) == 1


@pytest.mark.parametrize(
    "wrong",
    [
        {"at": pa.array(["noon"])},
        {"at": pa.array([1 << 60], pa.timestamp("us", "UTC"))},
        {"id": pa.array([None], pa.int64())},
        {"nothing": pa.array([1])},
    ],
)
def test_tombstones_that_do_not_fit_are_refused(wrong: dict[str, pa.Array]) -> None:
    columns = {"id": pa.array([1]), "at": pa.array([NOON]), "_deleted": pa.array([True])} | wrong
    with headwater.open("memory:") as log:
        log.create_topic("orders", "id BIGINT, at TIMESTAMP", key="id", event_time="at", cleanup="compact")
        log.create_topic("events", "id BIGINT, at TIMESTAMP")
        with log.producer("orders") as producer, pytest.raises(RowError):
            producer.send_changes(pa.table(columns))
        with log.producer("events") as producer, pytest.raises(UsageError, match="is not compacted"):
            producer.send_changes(pa.table(columns))
