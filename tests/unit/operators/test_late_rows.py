"""Which rows come too late."""

from __future__ import annotations

import pyarrow as pa

from headwater.operators.event_time import NEVER, times
from headwater.operators.late_rows import split_late


def rows(*at: int | None) -> pa.Table:
    return pa.table({"at": pa.array(at, pa.timestamp("us", "UTC"))})


def test_a_row_from_before_the_bound_is_late_and_one_at_the_bound_is_not() -> None:
    found = split_late(rows(9, 10, 11), "at", 10)
    assert found.at.tolist() == [10, 11]
    assert found.late is not None and times(found.late, "at").tolist() == [9]


def test_a_row_without_a_time_is_late_whatever_the_watermark_says() -> None:
    found = split_late(rows(None, 1), "at", NEVER)
    assert (found.rows.num_rows, found.late and found.late.num_rows) == (1, 1)


def test_where_nothing_is_late_all_rows_are_there() -> None:
    found = split_late(rows(1, 2), "at", NEVER)
    assert (found.rows.num_rows, found.late) == (2, None)
