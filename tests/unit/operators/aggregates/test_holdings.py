"""Values that are held, in any split, against plain lists."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.errors import UsageError
from headwater.operators.aggregates.aggregate import Aggregate
from headwater.operators.aggregates.holdings import Collect, Distinct, ExactQuantile, rank
from headwater.schema import parse
from soaking import examples

ROWS = st.lists(st.tuples(st.integers(0, 3), st.none() | st.sampled_from("abcd")), max_size=10)
Row = tuple[int, str | None]


def played(aggregate: Aggregate, parts: list[list[Row]]) -> Any:
    """Return what all rows come to, from partial results that are merged."""
    made = []
    for part in parts:
        rows = pa.table({"s": pa.array([row[1] for row in part], pa.string())})
        at = np.array([row[0] for row in part], np.int64)
        made.append(aggregate.partial(rows, at, np.zeros(len(part), np.int64), 1))
    both = [pa.concat_arrays(columns) for columns in zip(*made, strict=True)]
    (out,) = aggregate.finish(aggregate.merge(both, np.zeros(len(parts), np.int64), 1))
    return out.to_pylist()[0]


@examples(60)
@given(ROWS, ROWS, st.integers(1, 8), st.sampled_from([0.0, 0.25, 0.5, 0.9, 1.0]))
def test_what_is_held_is_told_by_values_and_times_alone(
    some: list[Row], more: list[Row], limit: int, q: float
) -> None:
    rows = sorted((at, value) for at, value in some + more if value is not None)
    values = sorted(value for _, value in rows)
    up_to = max(math.ceil(Fraction(str(q)) * len(values)), 1) - 1
    for parts in ([some, more], [more, some], [some + more]):
        assert played(Collect("s", limit), parts) == ([value for _, value in rows][:limit] or None)
        assert played(Distinct("s"), parts) == len(set(values))
        assert played(ExactQuantile("s", q), parts) == (values[up_to] if values else None)


def test_quantiles_that_are_asked_for_together_come_in_that_order() -> None:
    rows = [(0, letter) for letter in "dacb"]
    assert played(ExactQuantile("s", (1.0, 0.0, 0.5)), [rows]) == ["d", "a", "b"]
    assert played(ExactQuantile("s", (1.0, 0.0)), [[(0, None)]]) is None


@pytest.mark.parametrize(("q", "many", "place"), [(0.1, 10, 0), (0.3, 10, 2), (0.7, 10, 6), (0.07, 100, 6)])
def test_a_share_that_no_float_is_counts_as_the_decimal_that_was_written(
    q: float, many: int, place: int
) -> None:
    assert rank(q, np.array([many])).tolist() == [place]


def test_distinct_floats_are_those_that_group_by_tells_apart() -> None:
    rows = pa.table({"x": [0.0, -0.0, math.nan, -math.nan, 1.0, None]})
    assert Distinct("x").over(rows) == [3]
    assert Distinct("tags").over(pa.table({"tags": [["a"], ["a", None], ["a"], None]})) == [2]


def test_free_json_is_not_collected() -> None:
    with pytest.raises(UsageError, match='collect cannot take column "free"'):
        Collect("free").output("all", parse("free VARIANT"))
