"""Arrow types of declared ones."""

from __future__ import annotations

import pyarrow as pa
import pytest

from headwater.capture.sqlite.column_types import arrow_type


@pytest.mark.parametrize(
    ("declared", "type"),
    [
        ("INTEGER", pa.int64()),
        ("unsigned big int", pa.int64()),
        ("POINT", pa.int64()),  # SQLite sees INT in it, too
        ("VARCHAR(20)", pa.string()),
        ("CLOB", pa.string()),
        ("BLOB", pa.binary()),
        ("DOUBLE PRECISION", pa.float64()),
        ("Boolean", pa.bool_()),
        ("DECIMAL(10, 2)", pa.decimal128(10, 2)),
        ("numeric(5)", pa.decimal128(5, 0)),
        ("NUMERIC(50, 2)", pa.string()),
        ("NUMERIC", pa.float64()),
        ("DATETIME", pa.string()),
        ("DATE", pa.string()),
        ("JSON", pa.string()),
        ("", pa.string()),
    ],
)
def test_declared_types_are_read_by_the_rules_of_affinity(declared: str, type: pa.DataType) -> None:
    assert arrow_type(declared) == type
