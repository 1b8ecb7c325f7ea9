"""Cells in text form become the same columns."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from headwater.capture.postgres import text_columns
from pgoutput_kit import text_cells


def test_numbers_are_read() -> None:
    assert text_columns.numbers(pa.int16())(text_cells(["-5", None]))[0] == pa.array([-5, None], pa.int16())
    read = text_columns.numbers(pa.float64())(text_cells(["1e-07", "-Infinity"]))[0]
    assert read.to_pylist() == [1e-07, float("-inf")]


def test_truth_is_read() -> None:
    assert text_columns.booleans(text_cells(["t", "f", None]))[0].to_pylist() == [True, False, None]


def test_decimals_are_read_and_what_is_none_is_told() -> None:
    kind = pa.decimal128(6, 2)
    array, unfit = text_columns.decimals(kind)(text_cells(["-12.30", "NaN", None, "Infinity"]))
    assert array == pa.array([Decimal("-12.30"), None, None, None], kind)
    assert unfit == {1: "NaN", 3: "Infinity"}


def test_dates_are_read_and_what_is_outside_is_told() -> None:
    array, unfit = text_columns.dates(
        text_cells(["0001-02-03", "infinity", "0044-03-15 BC", "10000-01-01", None])
    )
    assert array.to_pylist() == [date(1, 2, 3), None, None, None, None]
    assert unfit == {1: "infinity", 2: "0044-03-15 BC", 3: "10000-01-01"}


def test_timestamps_are_read_and_what_is_outside_is_told() -> None:
    written = ["2024-01-02 03:04:05.1+00", "-infinity", "0044-03-15 00:00:00+00 BC", None]
    array, unfit = text_columns.timestamps(pa.timestamp("us", "UTC"))(text_cells(written))
    assert array.to_pylist() == [datetime(2024, 1, 2, 3, 4, 5, 100_000, UTC), None, None, None]
    assert unfit == {1: "-infinity", 2: "0044-03-15 00:00:00+00 BC"}
    local = text_columns.timestamps(pa.timestamp("us"))(text_cells(["9999-12-31 23:59:59.999999"]))
    assert local[0].to_pylist() == [datetime(9999, 12, 31, 23, 59, 59, 999_999)]


@given(st.lists(st.none() | st.binary()))
def test_bytes_are_read_from_hexadecimal_digits(values: list[bytes | None]) -> None:
    written = [None if value is None else "\\x" + value.hex() for value in values]
    array = text_columns.raw(text_cells(written))[0]
    array.validate(full=True)
    assert array.to_pylist() == values
