"""Which rows of a batch change anything, for columns of every type."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable

from headwater.sinks.warehouse import changes
from headwater.sinks.warehouse.declaration import WarehouseSchema, declare_warehouse
from headwater.values.fitting import Fitted
from headwater.values.keyed import settle

COLUMNS = (
    '`or"der by` STRING, n TINYINT, d DECIMAL(38,5), f DOUBLE, b BINARY, m MAP<STRING, ARRAY<INT>>, '
    "s STRUCT<x: STRING>, v VARIANT, t TIMESTAMP, z TIMESTAMP_NTZ, day DATE, ok BOOLEAN"
)
ROW: dict[str, Any] = {
    'or"der by': "a", "n": 1, "d": Decimal("1.50000"), "f": float("nan"), "b": b"\0", "m": [("k", [1, None])],
    "s": {"x": None}, "v": "{}", "t": datetime(2026, 1, 2, tzinfo=UTC), "z": datetime(2026, 1, 2),
    "day": date(2026, 1, 2), "ok": True,
}  # fmt: skip
OTHER: dict[str, Any] = {
    "n": 2, "d": Decimal("1.50001"), "f": 0.5, "b": b"\1", "m": [("k", [1, 2])], "s": {"x": ""}, "v": "[]",
    "t": datetime(2026, 1, 2, 1, tzinfo=UTC), "z": datetime(2026, 1, 3), "day": date(2026, 1, 3), "ok": False,
}  # fmt: skip


def settled(declared: WarehouseSchema, *rows: dict[str, Any]) -> Fitted:
    columns = {
        field.name: pa.array([row.get(field.name) for row in rows], field.type) for field in declared.schema
    }
    columns["_deleted"] = pa.array([row.get("_deleted", False) for row in rows])
    return settle(pa.table(columns), declared)


@pytest.mark.parametrize("history", [True, False], ids=["history", "current"])
def test_a_row_changes_something_if_any_of_its_values_does(tmp_path: Path, history: bool) -> None:
    declared = declare_warehouse("table", COLUMNS, 'or"der by', history)
    table = DeltaTable.create(tmp_path, declared.stored, partition_by=["is_current"] if history else None)
    first = settled(declared, ROW, {'or"der by': "empty"})
    assert len(changes.effective(table, first, declared)) == 2
    changes.merge(table, changes.Changes(first, 5), declared, CommitProperties())
    assert len(changes.effective(table, first, declared)) == 0
    for name, value in OTHER.items():
        for changed in (ROW | {name: value}, ROW | {name: None}):
            assert len(changes.effective(table, settled(declared, changed), declared)) == 1, name


@pytest.mark.parametrize("history", [True, False], ids=["history", "current"])
def test_only_rows_that_are_there_can_be_deleted(tmp_path: Path, history: bool) -> None:
    declared = declare_warehouse("table", "id BIGINT, name STRING", "id", history)
    table = DeltaTable.create(tmp_path, declared.stored, partition_by=["is_current"] if history else None)
    rows = settled(declared, *({"id": number, "name": "a"} for number in range(10)))
    changes.merge(table, changes.Changes(rows, 5), declared, CommitProperties())
    gone = settled(
        declared, {"id": 3, "_deleted": True}, {"id": 77, "_deleted": True}, {"id": 4, "name": "a"}
    )
    left = changes.effective(table, gone, declared)
    assert left.rows.column("id").to_pylist() == [3]
    changes.merge(table, changes.Changes(left, 6), declared, CommitProperties())
    assert len(changes.effective(table, left, declared)) == 0
