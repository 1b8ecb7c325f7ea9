"""A row that a node rejects: of an operator's tables, and as a record that names its offset."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pyarrow as pa

from headwater.engine.failure.rejected_row import RecordOffset, RejectedRow, rejected_rows
from headwater.operators.operator import rejected


def test_rows_of_tables_keep_their_order_and_their_errors() -> None:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    one = rejected(pa.table({"id": [1, 2]}), ["first", "second"])
    other = rejected(pa.table({"at": [at]}), ["third"])
    rows = rejected_rows([one, other])
    assert [row.error for row in rows] == ["first", "second", "third"]
    assert [json.loads(row.record or "") for row in rows] == [{"id": 1}, {"id": 2}, {"at": str(at)}]
    assert {row.source for row in rows} == {None}


def test_a_record_is_named_by_its_offset() -> None:
    row = RejectedRow("ValueError: no", RecordOffset("orders", 2, 5))
    assert str(row) == 'topic "orders", partition 2, offset 5: ValueError: no'


def test_a_command_is_a_record_of_its_topic_and_what_a_handler_made_is_not() -> None:
    command = rejected(pa.table({"key": ["a"], "partition": [1], "offset": [7]}), ["KeyError: 'x'"])
    made = rejected(pa.table({"key": [None]}), ["it has no key"])
    [first, second] = rejected_rows([command, made], "commands")
    assert (first.source, first.record) == (RecordOffset("commands", 1, 7), None)
    assert (second.source, second.record) == (None, '{"key": null}')
    assert rejected_rows([command])[0].source is None
