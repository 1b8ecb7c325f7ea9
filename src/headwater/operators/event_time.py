"""When rows happened, as numbers to compute with, and which of them come too late.

Invariant: a row without a time counts as late whatever the clock says, for no clock will ever have
passed it; after ``split_late`` every row has a time.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.operators.columns import plain_values

NEVER = -(1 << 63)
"""The clock before anything is known of time: no row is late, nothing is complete."""
FOREVER = (1 << 63) - 1
"""A clock behind which everything is complete."""

Times = npt.NDArray[np.int64]
"""Microseconds since 1970, one for each row; NEVER where the row does not say."""


class Split(NamedTuple):
    """The rows that are in time with their times, and those that are not, if any."""

    rows: pa.Table
    at: Times
    late: pa.Table | None


def times(rows: pa.Table, column: str) -> Times:
    """Return the time of each row."""
    return plain_values(rows.column(column).cast(pa.int64()), NEVER)


def split_late(rows: pa.Table, column: str, bound: int) -> Split:
    """Set apart the rows from before a bound, and those without a time."""
    at = times(rows, column)
    late = (at < max(bound, NEVER)) | (at == NEVER)
    if not late.any():
        return Split(rows, at, None)
    return Split(rows.filter(pa.array(~late)), at[~late], rows.filter(pa.array(late)))


def moved(at: Times, by: int) -> Times:
    """Return times that are later, or earlier, by a length of time; none beyond what a number holds."""
    return np.minimum(at, FOREVER - by) + by if by >= 0 else np.maximum(at, NEVER - by) + by


def behind(watermark: int, back: int) -> int:
    """Return the time so far before a clock; a clock that knows no time still knows none."""
    return NEVER if watermark == NEVER else max(watermark - back, NEVER)
