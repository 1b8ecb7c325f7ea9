"""Which Arrow type holds a column of MySQL."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from headwater.capture.mysql.column_types import mysql_column


def described(declared: str, **others: Any) -> dict[str, Any]:
    return {
        "COLUMN_NAME": "a",
        "DATA_TYPE": declared.partition("(")[0].partition(" ")[0],
        "COLUMN_TYPE": declared,
        "IS_NULLABLE": "YES",
        "EXTRA": "",
        "NUMERIC_PRECISION": None,
        "NUMERIC_SCALE": None,
        "DATETIME_PRECISION": None,
        "CHARACTER_OCTET_LENGTH": None,
        "CHARACTER_SET_NAME": None,
        **others,
    }


@pytest.mark.parametrize(
    ("declared", "kind"),
    [
        ("tinyint(1)", pa.int8()),
        ("tinyint(3) unsigned", pa.int16()),
        ("smallint(5) unsigned", pa.int32()),
        ("mediumint(8) unsigned", pa.int32()),
        ("int(10) unsigned", pa.int64()),
        ("bigint(20)", pa.int64()),
        ("bigint(20) unsigned", pa.decimal128(20)),
        ("float", pa.float32()),
        ("double", pa.float64()),
        ("varchar(10)", pa.string()),
        ("varbinary(10)", pa.binary()),
        ("date", pa.date32()),
        ("datetime(6)", pa.timestamp("us")),
        ("timestamp", pa.timestamp("us", "UTC")),
        ("time", pa.string()),
        ("year(4)", pa.int16()),
        ("enum('a','b')", pa.string()),
        ("bit(1)", pa.bool_()),
        ("bit(10)", pa.int64()),
        ("bit(64)", pa.decimal128(20)),
    ],
)
def test_every_type_has_one_that_holds_it(declared: str, kind: pa.DataType) -> None:
    found = mysql_column(described(declared))
    assert found is not None and found.type == kind


def test_decimals_that_arrow_does_not_hold_are_texts() -> None:
    for digits, kind in ((38, pa.decimal128(38, 2)), (39, pa.string())):
        found = mysql_column(described("decimal", NUMERIC_PRECISION=digits, NUMERIC_SCALE=2))
        assert found is not None and found.type == kind


def test_generated_columns_are_told_from_defaults() -> None:
    for extra, generated in (("VIRTUAL GENERATED", True), ("DEFAULT_GENERATED", False)):
        found = mysql_column(described("int", EXTRA=extra))
        assert found is not None and found.column.generated is generated


def test_what_cannot_be_read_is_left_out() -> None:
    assert mysql_column(described("geometry")) is None
    assert mysql_column(described("uuid")) is None
    assert mysql_column(described("varchar(5)", CHARACTER_SET_NAME="utf16")) is None
