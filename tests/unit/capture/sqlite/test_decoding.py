"""Rows of the outbox become changes of tables."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from headwater.capture.change import (
    DELETE,
    INSERT,
    TRUNCATE,
    UPDATE,
    SourceColumn,
    SourceTable,
    Transactions,
    Truncation,
)
from headwater.capture.sqlite.decoding import changes

ONE = SourceTable(
    "one", (SourceColumn("id", pa.int64(), "INT"), SourceColumn("a", pa.string(), "TEXT")), ("id",)
)
TWO = SourceTable("two", (SourceColumn("k", pa.string(), "TEXT"),), ("k",))
ONCE = Transactions(("9",), ("x:9:1",), np.array([5]))


def row(id: int, source: int, operation: int, *values: Any) -> tuple[Any, ...]:
    return (id, source, operation, 1000, *values, *[None] * (4 - len(values)))


def test_changes_of_each_table_are_together_with_their_numbers() -> None:
    rows = [
        row(5, 1, INSERT, 1, "x"),
        row(6, 2, INSERT, "k"),
        row(7, 1, UPDATE, 1, "y", 1, "x"),
        row(8, 3, INSERT),
    ]
    two, one = changes(rows, {1: ONE, 2: TWO}, ONCE, 4)
    assert not isinstance(one, Truncation)
    assert not isinstance(two, Truncation)
    assert (list(one.index), list(two.index)) == ([0, 2], [1])
    assert one.rows.to_pydict() == {"id": [1, 1], "a": ["x", "y"]}
    assert one.before is not None
    assert one.before.to_pydict() == {"id": [None, 1], "a": [None, "x"]}
    assert two.before is None


def test_what_is_before_a_truncation_stands_before_it() -> None:
    rows = [row(5, 1, INSERT, 1, "x"), row(6, 1, TRUNCATE), row(7, 2, INSERT, "k"), row(8, 1, INSERT, 2, "y")]
    found = changes(rows, {1: ONE, 2: TWO}, ONCE, 4)
    assert [(each.table.name, isinstance(each, Truncation)) for each in found] == [
        ("one", False), ("one", True), ("two", False), ("one", False)
    ]  # fmt: skip


def test_of_a_deletion_only_the_key_has_to_fit() -> None:
    rows = [row(5, 1, DELETE, 1, 7), row(6, 1, INSERT, "?", 8), row(7, 1, INSERT, None, "z")]
    (found,) = changes(rows, {1: ONE}, ONCE, 4)
    assert not isinstance(found, Truncation)
    assert found.unfit == {
        1: 'column "id" (INT) holds the text ?',
        2: 'column "id" of the key is null',
    }
    assert found.rows.to_pydict() == {"id": [1, None, None], "a": [None, None, "z"]}
