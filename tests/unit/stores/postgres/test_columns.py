"""Arrow columns as PostgreSQL reads them: what is read back is the value that was given. No server."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from headwater import schema as schemas
from headwater.stores.postgres import columns
from headwater.values.fitting import Fitted


@pytest.mark.parametrize(
    ("declared", "kind"),
    [
        ("TINYINT", "SMALLINT"),
        ("BIGINT", "BIGINT"),
        ("DECIMAL(30,10)", "NUMERIC(30,10)"),
        ("TIMESTAMP", "TIMESTAMP WITH TIME ZONE"),
        ("TIMESTAMP_NTZ", "TIMESTAMP"),
        ("ARRAY<BIGINT>", "JSONB"),
        ("VARIANT", "JSONB"),
    ],
)
def test_a_column_has_the_type_that_holds_all_its_values(declared: str, kind: str) -> None:
    assert columns.sql_type(schemas.parse(f"c {declared}").field(0)) == kind


def csv(declared: str, *values: object) -> list[bytes]:
    schema = schemas.parse(f"c {declared}")
    rows = pa.record_batch([pa.array(values, schema.field(0).type)], schema=schema)
    return bytes(columns.to_csv(Fitted(rows, np.zeros(len(values), bool)))).splitlines()


def test_a_null_is_nothing_and_an_empty_text_is_in_quotes() -> None:
    assert csv("STRING", None, "", 'a"b') == [b",false", b'"",false', b'"a""b",false']


def test_bytes_decimals_and_lists_are_written_as_the_server_reads_them() -> None:
    assert csv("BINARY", b"\x00\xff") == [b'"\\x00ff",false']
    assert csv("DECIMAL(10,2)", Decimal("1.50")) == [b'"1.50",false']
    assert csv("ARRAY<BIGINT>", [1, None]) == [b'"[1,null]",false']


def test_rows_that_were_fetched_are_the_columns_again() -> None:
    schema = schemas.parse("id BIGINT, tags ARRAY<BINARY>, free VARIANT")
    rows = [(1, ["AA==", None], {"a": 10**30}), (2, None, None)]
    assert columns.to_batch(rows, schema).to_pylist() == [
        {"id": 1, "tags": [b"\0", None], "free": '{"a":1000000000000000000000000000000}'},
        {"id": 2, "tags": None, "free": None},
    ]
    assert columns.to_batch([], schema).schema == schema
