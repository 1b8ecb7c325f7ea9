"""What is captured of an outbox, as it is declared."""

from __future__ import annotations

from datetime import datetime

import pyarrow as pa
import pytest

import headwater
from headwater import topic as topics
from headwater.capture.outbox.captured_outbox import CapturedOutbox, named_rows, row_names, stored
from headwater.errors import TopicError

COLUMNS = "id BIGINT, item STRING"
TIMED = topics.create("orders", f"{COLUMNS}, committed_at TIMESTAMP", key="id", event_time="committed_at")


def test_the_time_of_the_commit_is_no_part_of_an_event() -> None:
    outbox = CapturedOutbox("outbox", TIMED, "payload", ("kind",))
    assert (outbox.schema.names, outbox.columns) == (["id", "item"], ("payload", "kind"))
    assert outbox.event_topic.schema.names == ["id", "item"]


def test_without_a_payload_the_columns_of_the_table_are_read() -> None:
    declared = topics.create("orders", f"{COLUMNS}, at TIMESTAMP", event_time="at")
    assert CapturedOutbox("outbox", declared, headers=("item", "kind")).columns == (
        "id",
        "item",
        "at",
        "kind",
    )


def test_its_topic_is_made_or_has_to_be_like_it() -> None:
    with headwater.open("memory:") as log:
        CapturedOutbox("outbox", TIMED).declare(log)
        CapturedOutbox("outbox", TIMED).declare(log)
        assert (log.topic("orders").cleanup, log.topic("orders").key) == ("delete", ("id",))
        other = topics.create("orders", COLUMNS)
        with pytest.raises(TopicError, match='not what outbox "outbox" is captured into'):
            CapturedOutbox("outbox", other).declare(log)


def test_whoever_has_made_the_topic_says_how_long_records_are_kept() -> None:
    with headwater.open("memory:") as log:
        log.create_topic("orders", COLUMNS, key="id", partitions=4, retention="7 days")
        CapturedOutbox("outbox", topics.create("orders", COLUMNS, key="id")).declare(log)


def test_what_is_computed_is_not_stored() -> None:
    declared = topics.create(
        "orders", "id BIGINT, at BIGINT", key="id + 1", event_time="timestamp_millis(at)"
    )
    kept = stored(declared)
    assert (kept.key, kept.event_time, kept.schema.names) == ((), None, ["id", "at"])


def test_rows_are_named_by_their_keys_and_found_again() -> None:
    at = datetime.fromisoformat("2026-01-02T03:04:05.000006")
    batch = pa.record_batch({"a": [1, 2**60], "b": ['x"y', "é"], "at": [at, at], "more": [1, 2]})
    names = row_names(batch, ["b", "a", "at"])
    assert names[0] == b'{"b":"x\\"y","a":1,"at":"2026-01-02T03:04:05.000006"}'
    key = pa.schema([batch.schema.field(name) for name in ("b", "a", "at")])
    assert named_rows(names, key).to_pylist() == batch.select(["b", "a", "at"]).to_pylist()


def test_a_row_without_a_whole_key_is_not_found_again() -> None:
    key = pa.schema([("a", pa.int64()), ("b", pa.string())])
    batch = pa.RecordBatch.from_pylist([{"a": 1, "b": None}, {"a": 2, "b": "x"}], key)
    assert named_rows(row_names(batch, ["a", "b"]), key).to_pylist() == [{"a": 2, "b": "x"}]
