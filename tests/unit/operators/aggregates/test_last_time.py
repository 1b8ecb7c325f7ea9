"""The last time of each group, in any split."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from headwater.operators.aggregates.last_time import LastTime
from soaking import examples

ROWS = st.lists(st.tuples(st.integers(0, 2), st.integers(-(2**62), 2**62)), min_size=1, max_size=12)


@examples(50)
@given(ROWS, ROWS)
def test_the_last_time_of_parts_is_that_of_all_rows(
    some: list[tuple[int, int]], more: list[tuple[int, int]]
) -> None:
    rows = [(group, -(2**63 - 1)) for group in range(3)]
    parts = []
    for part in (rows + some, rows + more):
        groups, at = np.array(part, np.int64).T
        nothing = pa.table({"x": pa.nulls(len(part), pa.int64())})
        parts += LastTime().partial(nothing, at, groups, 3)
    merged = LastTime().merge([pa.concat_arrays(parts)], np.tile(np.arange(3), 2), 3)
    expected = [max(at for mine, at in rows + some + more if mine == group) for group in range(3)]
    assert LastTime().finish(merged)[0].to_pylist() == expected


def test_every_row_counts_whatever_is_in_it() -> None:
    rows = pa.table({"x": pa.nulls(2, pa.string())})
    assert LastTime().over(rows, np.array([-7, -9])) == [-7]
    assert LastTime().over(rows.slice(0, 1), np.array([5])) == [5]


def test_its_columns_are_microseconds_under_its_name() -> None:
    assert LastTime().output("_last", pa.schema([])) == [pa.field("_last", pa.int64())]
    assert LastTime().state("_last", pa.schema([])) == [pa.field("_last.last", pa.int64())]
