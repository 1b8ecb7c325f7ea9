"""The topics of a captured table."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

import headwater
from changes_kit import CAPTURED
from headwater.capture.writing.captured_table import CapturedTable
from headwater.errors import TopicError


def test_its_topics_are_made_once() -> None:
    with headwater.open("memory:") as log:
        both = replace(CAPTURED, history=True)
        both.declare(log)
        both.declare(log)
        table, changes = log.topic("customers"), log.topic("customers.changes")
    assert (table.compacted, table.event_time, table.key) == (True, "committed_at", ("id",))
    assert (changes.compacted, changes.event_time, changes.schema.names[:2]) == (
        False,
        "committed_at",
        ["id", "operation"],
    )


def test_a_column_of_the_table_may_be_its_event_time() -> None:
    assert replace(CAPTURED, event_time="at").topic_schema == CAPTURED.schema


def test_a_topic_that_is_something_else_is_refused() -> None:
    with headwater.open("memory:") as log:
        log.create_topic("customers", "id BIGINT")
        with pytest.raises(TopicError, match='is not what table "customers" is captured into'):
            CAPTURED.declare(log)


def test_keys_are_named_as_the_topic_has_them() -> None:
    declared = pa.schema([("amount", pa.decimal128(12, 4)), ("id", pa.int64()), ("name", pa.string())])
    captured = CapturedTable("orders", "orders", declared, ("id", "amount"))
    source = pa.RecordBatch.from_pydict(
        {"amount": pa.array(["1.5", "2.25"]).cast(pa.decimal128(5, 2)), "id": pa.array([1, 2], pa.int32())}
    )
    topic = pa.Table.from_batches([source]).cast(pa.schema([declared.field("amount"), declared.field("id")]))
    assert captured.key_names(source).equals(captured.key_names(topic))
    assert captured.key_names(source).to_pylist() == [b'[1,"1.5000"]', b'[2,"2.2500"]']


def test_a_key_that_does_not_fit_has_no_name() -> None:
    captured = CapturedTable("orders", "orders", pa.schema([("id", pa.int64())]), ("id",))
    assert captured.key_names(pa.table({"id": ["1", "one", "2"]})).to_pylist() == [b"1", None, b"2"]
