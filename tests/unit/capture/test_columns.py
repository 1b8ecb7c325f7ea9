"""Whether a table is as it is declared."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from changes_kit import CAPTURED, CUSTOMERS
from headwater.capture.change import SourceColumn
from headwater.capture.columns import differences, holds


def test_a_table_that_fits_has_no_differences() -> None:
    assert differences(CAPTURED, CUSTOMERS) == []


def test_each_difference_is_named() -> None:
    columns = (
        SourceColumn("id", pa.decimal128(20, 2), "numeric(20,2)"),
        SourceColumn("nam", pa.string(), "text"),
    )
    assert differences(CAPTURED, replace(CUSTOMERS, columns=columns, key=("nam",))) == [
        'column "id" is numeric(20,2), which BIGINT does not hold',
        'there is no column "name" (did you mean "nam"?)',
        "its key is (nam), not (id)",
    ]
    assert differences(CAPTURED, replace(CUSTOMERS, key=())) == [
        "it has no primary key, so its rows cannot be told apart"
    ]


@pytest.mark.parametrize(
    ("declared", "source", "fits"),
    [
        (pa.int64(), pa.int32(), True),
        (pa.int16(), pa.int32(), False),
        (pa.float64(), pa.float32(), True),
        (pa.float64(), pa.int64(), False),
        (pa.decimal128(19, 0), pa.int64(), True),
        (pa.decimal128(10, 0), pa.int64(), False),
        (pa.decimal128(12, 2), pa.decimal128(10, 2), True),
        (pa.decimal128(10, 1), pa.decimal128(10, 2), False),
        (pa.timestamp("us", "UTC"), pa.string(), True),
        (pa.string(), pa.int64(), False),
        (pa.list_(pa.int64()), pa.list_(pa.int32()), True),
        (pa.timestamp("us", "UTC"), pa.timestamp("us"), False),
    ],
)
def test_a_type_holds_another_or_not(declared: pa.DataType, source: pa.DataType, fits: bool) -> None:
    assert holds(declared, source) is fits
