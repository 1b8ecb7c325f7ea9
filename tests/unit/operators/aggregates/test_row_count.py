"""How many rows each group has had, in any split."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from headwater.operators.aggregates.row_count import RowCount
from soaking import examples

GROUPS = st.lists(st.integers(0, 3), max_size=12)


@examples(50)
@given(GROUPS, GROUPS)
def test_the_counts_of_parts_add_up_to_that_of_all_rows(some: list[int], more: list[int]) -> None:
    parts = []
    for part in (some, more):
        nothing = pa.table({"x": pa.nulls(len(part), pa.int64())})
        at = np.zeros(len(part), np.int64)
        parts += RowCount().partial(nothing, at, np.array(part, np.int64), 4)
    merged = RowCount().merge([pa.concat_arrays(parts)], np.tile(np.arange(4), 2), 4)
    assert RowCount().finish(merged)[0].to_pylist() == [(some + more).count(group) for group in range(4)]


def test_every_row_counts_whatever_is_in_it() -> None:
    assert RowCount().over(pa.table({"x": pa.nulls(3, pa.string())})) == [3]


def test_a_partial_result_has_the_type_of_its_column() -> None:
    (field,) = RowCount().state("_rows", pa.schema([]))
    (part,) = RowCount().partial(pa.table({"x": [1]}), np.array([0]), np.array([0]), 1)
    assert (field.name, part.type) == ("_rows.count", field.type)
    assert RowCount().output("_rows", pa.schema([]))[0].type == field.type
