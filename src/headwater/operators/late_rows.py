"""Which rows come too late.

Invariant: a row without a time counts as late whatever the clock says, for no clock will ever have
passed it; after ``split_late`` every row has a time.
"""

from __future__ import annotations

from typing import NamedTuple

import pyarrow as pa

from headwater.operators.event_time import NEVER, Times, times


class Split(NamedTuple):
    """The rows that are in time with their times, and those that are not, if any."""

    rows: pa.Table
    at: Times
    late: pa.Table | None


def split_late(rows: pa.Table, column: str, bound: int) -> Split:
    """Set apart the rows from before a bound, and those without a time."""
    at = times(rows, column)
    late = (at < max(bound, NEVER)) | (at == NEVER)
    if not late.any():
        return Split(rows, at, None)
    return Split(rows.filter(pa.array(~late)), at[~late], rows.filter(pa.array(late)))
