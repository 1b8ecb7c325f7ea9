"""Rows of events as changes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from headwater.capture.change import DELETE, INSERT, UPDATE, SourceColumn, Transactions
from headwater.capture.mysql.catalog import made
from headwater.capture.mysql.column_types import MySqlColumn
from headwater.capture.mysql.row_changes import RowRun

TABLE = made(
    "t",
    (
        MySqlColumn(SourceColumn("id", pa.int32(), "int", False), "int"),
        MySqlColumn(SourceColumn("day", pa.date32(), "date"), "date"),
    ),
    ("id",),
)
ONE = Transactions(("0-1-5",), ("0-1-5",), np.array([0], np.int64))


def written(id: int, why: str | None = None) -> dict[str, Any]:
    return {"values": {"id": id, "day": None}, "none_sources": {"day": why or "null"}}


def updated(before: int, after: int) -> dict[str, Any]:
    return {
        "before_values": {"id": before, "day": None},
        "before_none_sources": {"day": "null"},
        "after_values": {"id": after, "day": None},
        "after_none_sources": {"day": "null"},
    }


def test_changes_keep_their_order_and_numbers() -> None:
    run = RowRun(TABLE)
    run.add(INSERT, [written(1), written(2)], 0, 0)
    run.add(UPDATE, [updated(1, 1)], 0, 2)
    run.add(DELETE, [written(2)], 0, 3)
    found = run.changes(ONE)
    assert list(found.operation) == [INSERT, INSERT, UPDATE, DELETE]
    assert list(found.index) == [0, 1, 2, 3] and list(found.transaction) == [0, 0, 0, 0]
    assert found.rows.column("id").to_pylist() == [1, 2, 1, 2]
    assert found.before is not None and found.before.column("id").to_pylist() == [None, None, 1, 2]


def test_an_update_of_the_key_is_two_changes_with_one_number() -> None:
    run = RowRun(TABLE)
    run.add(UPDATE, [updated(1, 5)], 0, 7)
    found = run.changes(ONE)
    assert (list(found.operation), list(found.index)) == ([DELETE, INSERT], [7, 7])
    assert found.rows.column("id").to_pylist() == [1, 5]


def test_a_date_that_is_none_is_told_with_its_row() -> None:
    run = RowRun(TABLE)
    run.add(INSERT, [written(1), written(2, "out of date range")], 0, 0)
    found = run.changes(ONE)
    assert found.before is None
    assert list(found.unfit) == [1] and 'column "day"' in found.unfit[1]
