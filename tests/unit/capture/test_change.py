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


def test_truncations_of_one_statement_come_together() -> None:
    one, other = (SourceTable(name, (), ()) for name in ("one", "other"))
    once = Transactions(("7",), ("0/10",), np.array([1]))
    first, second, later = (
        Truncation(table, once, 0, index) for table, index in ((one, 0), (other, 0), (one, 1))
    )
    delivery = Delivery((first, second, later), "0/10")
    assert list(delivery.statements()) == [[first, second], [later]]
    assert delivery.last == ChangePosition("0/10", 1)
