"""Values of columns as Arrow, and those that do not fit."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

from headwater.capture.change import SourceColumn
from headwater.capture.mysql.column_types import MySqlColumn
from headwater.capture.mysql.values import from_binlog, from_query, time_text


def column(kind: str, arrow: pa.DataType, width: int = 0, members: tuple[str, ...] = ()) -> MySqlColumn:
    return MySqlColumn(SourceColumn("a", arrow, kind), kind, width, members)


@pytest.mark.parametrize(
    ("each", "value", "expected"),
    [
        (column("bigint", pa.decimal128(20)), 2**64 - 1, 2**64 - 1),
        (column("binary", pa.binary(), 4), b"a", b"a\0\0\0"),
        (column("time", pa.string(), 2), timedelta(hours=30, milliseconds=50), "30:00:00.05"),
        (column("year", pa.int16()), 1900, 0),
        (column("set", pa.string(), 0, ("x", "y", "z")), {"z", "x"}, "x,z"),
        (column("set", pa.string(), 0, ("x",)), (), ""),
        (column("json", pa.string()), '{"a":1}', '{"a":1}'),
        (column("json", pa.string()), {b"a": [1, b"\xc3\xa9"]}, '{"a": [1, "é"]}'),
        (column("bit", pa.bool_(), 1), "1", True),
        (column("bit", pa.int64(), 10), "1010101010", 682),
    ],
)
def test_values_of_the_binlog_become_those_of_the_column(
    each: MySqlColumn, value: Any, expected: Any
) -> None:
    found = from_binlog(each, [value, None])
    assert (found.array.to_pylist(), dict(found.unfit)) == ([expected, None], {})


def test_dates_that_are_none_do_not_fit() -> None:
    found = from_binlog(column("date", pa.date32()), [date(2024, 1, 2), None, None], [1])
    assert found.array.to_pylist() == [date(2024, 1, 2), None, None]
    assert list(found.unfit) == [1] and "0000-00-00" in found.unfit[1]


def test_a_timestamp_of_zero_does_not_fit() -> None:
    found = from_binlog(
        column("timestamp", pa.timestamp("us", "UTC")), [datetime(1970, 1, 1), datetime(2024, 1, 2)]
    )
    assert dict(found.unfit) == {0: "0000-00-00 00:00:00"}
    assert (
        found.array[0].as_py() is None and found.array[1].as_py().isoformat() == "2024-01-02T00:00:00+00:00"
    )


def test_a_value_that_is_too_large_does_not_fit() -> None:
    found = from_binlog(column("tinyint", pa.int8()), [1, 300])
    assert (found.array.to_pylist(), dict(found.unfit)) == ([1, None], {1: "300"})


def test_dates_of_a_query_are_texts() -> None:
    found = from_query(column("date", pa.date32()), ["2024-01-02", None, "0000-00-00", "2024-02-00"])
    assert found.array.to_pylist() == [date(2024, 1, 2), None, None, None]
    assert dict(found.unfit) == {2: "0000-00-00", 3: "2024-02-00"}
    moments = from_query(column("datetime", pa.timestamp("us")), ["2024-01-02 03:04:05.678", None])
    assert moments.array.to_pylist() == [datetime(2024, 1, 2, 3, 4, 5, 678000), None]


def test_bits_of_a_query_are_bytes() -> None:
    assert from_query(column("bit", pa.int64(), 10), [b"\x02\xaa", None]).array.to_pylist() == [682, None]


def test_times_are_printed_as_the_server_prints_them() -> None:
    assert time_text(timedelta(hours=838, minutes=59, seconds=59), 0) == "838:59:59"
    assert time_text(timedelta(seconds=-1), 0) == "-00:00:01"


def test_a_negative_time_with_a_fraction_is_not_guessed() -> None:
    found = from_binlog(column("time", pa.string(), 2), [timedelta(seconds=-1.5)])
    assert found.array.to_pylist() == [None] and "negative" in found.unfit[0]
