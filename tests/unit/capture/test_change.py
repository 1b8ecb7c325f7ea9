"""What a source tells of its tables and their changes."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from headwater.capture.change import (
    INSERT,
    OPERATIONS,
    ChangePosition,
    Delivery,
    SourceColumn,
    SourceTable,
    TableChanges,
    Transactions,
    Truncation,
)


def test_a_table_has_its_columns_as_arrow() -> None:
    columns = (
        SourceColumn("id", pa.int64(), "bigint", nullable=False),
        SourceColumn("name", pa.string(), "text"),
    )
    table = SourceTable("customers", columns, ("id",))
    assert table.schema == pa.schema([pa.field("id", pa.int64(), False), pa.field("name", pa.string())])


def test_changes_are_as_many_as_their_operations() -> None:
    table = SourceTable("customers", (SourceColumn("id", pa.int64(), "bigint"),), ("id",))
    rows = pa.RecordBatch.from_pydict({"id": [1, 2]})
    once = Transactions(("7",), ("0/10",), np.array([1]))
    changes = TableChanges(
        table, np.array([INSERT, INSERT], np.int8), rows, once, np.zeros(2, int), np.arange(2)
    )
    assert len(changes) == 2
    assert [OPERATIONS[code] for code in changes.operation] == ["insert", "insert"]


def test_some_changes_are_chosen_with_all_that_is_known_of_them() -> None:
    table = SourceTable("customers", (SourceColumn("id", pa.int64(), "bigint"),), ("id",))
    once = Transactions(("7",), ("0/10",), np.array([1]))
    changes = TableChanges(
        table,
        np.array([INSERT] * 3, np.int8),
        pa.RecordBatch.from_pydict({"id": [1, 2, 3]}),
        once,
        np.zeros(3, int),
        np.arange(3),
        unfit={0: "a", 2: "b"},
    )
    chosen = changes.chosen(np.array([1, 2]))
    assert (chosen.rows["id"].to_pylist(), chosen.index.tolist(), chosen.unfit) == ([2, 3], [1, 2], {1: "b"})
    assert changes.chosen(np.arange(3)) is changes


def test_truncations_of_one_statement_come_together() -> None:
    one, other = (SourceTable(name, (), ()) for name in ("one", "other"))
    once = Transactions(("7",), ("0/10",), np.array([1]))
    first, second, later = (
        Truncation(table, once, 0, index) for table, index in ((one, 0), (other, 0), (one, 1))
    )
    delivery = Delivery((first, second, later), "0/10")
    assert list(delivery.statements()) == [[first, second], [later]]
    assert delivery.last == ChangePosition("0/10", 1)
