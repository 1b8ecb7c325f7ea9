"""Cells in binary form become columns."""

from __future__ import annotations

import struct
import uuid
from datetime import UTC, date, datetime, timedelta

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from headwater.capture.postgres import binary_columns
from pgoutput_kit import cells

DAY = 86_400_000_000


def packed(form: str, values: list[int | float | None]) -> list[bytes | None]:
    return [None if value is None else struct.pack(f">{form}", value) for value in values]


@given(st.lists(st.none() | st.integers(-(2**63), 2**63 - 1)))
def test_whole_numbers_come_out_as_they_went_in(values: list[int | None]) -> None:
    array, unfit = binary_columns.numbers("i8", pa.int64())(cells(packed("q", values)))
    assert (array.to_pylist(), array.type, unfit) == (values, pa.int64(), {})


@given(st.lists(st.none() | st.floats(allow_nan=False)))
def test_floating_numbers_come_out_as_they_went_in(values: list[float | None]) -> None:
    assert binary_columns.numbers("f8", pa.float64())(cells(packed("d", values)))[0].to_pylist() == values


@given(st.lists(st.none() | st.text()))
def test_texts_come_out_as_they_went_in(values: list[str | None]) -> None:
    column = cells([None if value is None else value.encode() for value in values])
    assert binary_columns.texts(column)[0].to_pylist() == values


@given(st.lists(st.none() | st.uuids()))
def test_uuids_become_texts(values: list[uuid.UUID | None]) -> None:
    column = cells([None if value is None else value.bytes for value in values])
    array = binary_columns.uuids(column)[0]
    array.validate(full=True)
    assert array.to_pylist() == [None if value is None else str(value) for value in values]


@given(st.lists(st.none() | st.dates()))
def test_dates_come_out_as_they_went_in(values: list[date | None]) -> None:
    days = [None if value is None else (value - date(2000, 1, 1)).days for value in values]
    array, unfit = binary_columns.dates(cells(packed("i", days)))
    assert (array.to_pylist(), unfit) == (values, {})


@given(st.lists(st.none() | st.datetimes()))
def test_timestamps_come_out_as_they_went_in(values: list[datetime | None]) -> None:
    moments = [None if v is None else (v - datetime(2000, 1, 1)) // timedelta(microseconds=1) for v in values]
    column = cells(packed("q", moments))
    assert binary_columns.timestamps(pa.timestamp("us"))(column)[0].to_pylist() == values
    aware = [None if value is None else value.replace(tzinfo=UTC) for value in values]
    assert binary_columns.timestamps(pa.timestamp("us", "UTC"))(column)[0].to_pylist() == aware


def test_truth_bytes_and_json_come_out_as_they_went_in() -> None:
    assert binary_columns.booleans(cells([b"\1", b"\0", None]))[0].to_pylist() == [True, False, None]
    assert binary_columns.raw(cells([b"\xff", b"", None]))[0].to_pylist() == [b"\xff", b"", None]
    assert binary_columns.jsonb(cells([b"\1[1]", None]))[0].to_pylist() == ["[1]", None]


def test_days_that_arrow_users_cannot_have_are_told_as_postgresql_prints_them() -> None:
    days = [0, 2**31 - 1, -(2**31), 2921940, -730120 - 365]
    array, unfit = binary_columns.dates(cells(packed("i", days)))
    assert array.to_pylist() == [date(2000, 1, 1), None, None, None, None]
    assert unfit == {1: "infinity", 2: "-infinity", 3: "10000-01-01", 4: "0001-01-01 BC"}


def test_moments_that_arrow_users_cannot_have_are_told_as_postgresql_prints_them() -> None:
    moments = [2**63 - 1, -(2**63), 2921940 * DAY + 1_500_000, -730119 * DAY - 1]
    array, unfit = binary_columns.timestamps(pa.timestamp("us", "UTC"))(cells(packed("q", moments)))
    assert array.null_count == 4
    assert list(unfit.values())[:3] == ["infinity", "-infinity", "10000-01-01 00:00:01.5+00"]
    assert unfit[3] == "0001-12-31 23:59:59.999999+00 BC"


def test_a_text_that_is_not_unicode_is_told() -> None:
    array, unfit = binary_columns.texts(cells([b"good", b"b\xe4d", None]))
    assert (array.to_pylist(), unfit) == (["good", None, None], {1: r"b'b\xe4d'"})
