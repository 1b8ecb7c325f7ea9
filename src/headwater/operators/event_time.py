"""When rows happened, as numbers to compute with.

Invariant: no arithmetic on times leaves what a number holds, and a clock that knows no time stays one.
"""

from __future__ import annotations

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


def times(rows: pa.Table, column: str) -> Times:
    """Return the time of each row."""
    return plain_values(rows.column(column).cast(pa.int64()), NEVER)


def moved(at: Times, by: int) -> Times:
    """Return times that are later, or earlier, by a length of time; none beyond what a number holds."""
    return np.minimum(at, FOREVER - by) + by if by >= 0 else np.maximum(at, NEVER - by) + by


def behind(watermark: int, back: int) -> int:
    """Return the time so far before a clock; a clock that knows no time still knows none."""
    return NEVER if watermark == NEVER else max(watermark - back, NEVER)
