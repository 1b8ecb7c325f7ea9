"""How values lie in MySQL; that they come back is shown on a server, in tests/integration/sinks/mysql."""

from __future__ import annotations

import pyarrow as pa
import pytest

from headwater import schema as schemas
from headwater.errors import RowError
from headwater.stores.mysql import columns
from headwater.values.keyed import declare


@pytest.mark.parametrize(
    ("declared", "plain", "in_key"),
    [
        ("STRING", "LONGTEXT", "VARCHAR(255)"),
        ("BINARY", "LONGBLOB", "VARBINARY(255)"),
        ("BIGINT", "BIGINT", "BIGINT"),
        ("FLOAT", "DOUBLE", "DOUBLE"),
        ("DECIMAL(20,4)", "DECIMAL(20,4)", "DECIMAL(20,4)"),
        ("TIMESTAMP", "DATETIME(6)", "DATETIME(6)"),
        ("ARRAY<INT>", "LONGTEXT", "LONGTEXT"),
        ("VARIANT", "LONGTEXT", "VARCHAR(255)"),
    ],
)
def test_each_type_has_its_own(declared: str, plain: str, in_key: str) -> None:
    field = schemas.parse(f"c {declared}").field("c")
    assert (columns.sql_type(field, key=False), columns.sql_type(field, key=True)) == (plain, in_key)


def test_numbers_that_mysql_has_not_are_refused() -> None:
    keyed = declare("table", "id BIGINT, n DOUBLE", "id")
    rows = pa.record_batch({"id": [1, 2], "n": pa.array([None, 2.5])})
    assert list(columns.to_rows(rows, keyed)) == [(1, None), (2, 2.5)]
    with pytest.raises(RowError, match='column "n"'):
        list(columns.to_rows(pa.record_batch({"id": [1], "n": [float("inf")]}), keyed))


def test_no_rows_are_a_batch_without_rows() -> None:
    assert columns.to_batch([], schemas.parse("id BIGINT, at TIMESTAMP")).num_rows == 0
