"""What a source tells of its tables and their changes."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from headwater.capture.change import INSERT, OPERATIONS, SourceColumn, SourceTable, TableChanges, Transactions


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
