"""Times and dates of the years 1 to 9999 are let in, and no others."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pyarrow as pa

from headwater.schema import TIMESTAMP
from headwater.values.years import outside, readable

LAST = datetime.max.replace(tzinfo=UTC)
BEYOND = pa.array([0, 253_402_300_800_000_000], pa.int64()).cast(TIMESTAMP)
"""1970, and the first instant of the year 10000."""


def test_the_first_and_the_last_that_python_has_can_be_read() -> None:
    assert outside(pa.array([datetime.min.replace(tzinfo=UTC), LAST, None], TIMESTAMP)) is None
    assert outside(pa.array([date.min, date.max], pa.date32())) is None


def test_the_first_that_cannot_be_read_is_named() -> None:
    assert outside(BEYOND) == 1
    assert outside(pa.array([None, -800_000, 0], pa.int32()).cast(pa.date32())) == 1


def test_other_columns_and_empty_ones_have_no_such_value() -> None:
    assert outside(pa.array([2**62])) is None
    assert outside(pa.array([], TIMESTAMP)) is None
    assert outside(pa.array([None], TIMESTAMP)) is None


def test_what_lies_deep_inside_is_seen() -> None:
    assert not readable(pa.ListArray.from_arrays([0, 2], BEYOND))
    assert not readable(pa.StructArray.from_arrays([BEYOND], ["at"]))
    assert not readable(pa.MapArray.from_arrays([0, 2], pa.array(["a", "b"]), BEYOND))
    assert readable(pa.ListArray.from_arrays([0, 1], BEYOND))
