"""The least, greatest, earliest and latest values against a sort of plain tuples."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.operators.aggregates import extremes
from headwater.operators.aggregates.aggregate import Aggregate
from headwater.operators.event_time import FOREVER, NEVER
from headwater.schema import is_variant, parse
from soaking import examples
from unit.operators.stepping import rank

FLOATS = st.none() | st.sampled_from([0.0, -0.0, math.nan, math.inf, -math.inf]) | st.floats(-3, 3)
ROWS = st.lists(st.tuples(st.integers(0, 2), st.integers(-2, 3), FLOATS), min_size=1, max_size=15)
Row = tuple[int, int, float | None]


def played(aggregate: Aggregate, parts: list[list[Row]], count: int) -> list[Any]:
    """Return what each of some groups comes to, from partial results that are merged."""
    made = []
    for part in parts:
        at, groups = (np.array([row[n] for row in part], np.int64) for n in (1, 0))
        rows = pa.table({"x": pa.array([row[2] for row in part], pa.float64())})
        made.append(aggregate.partial(rows, at, groups, count))
    both = [pa.concat_arrays(columns) for columns in zip(*made, strict=True)]
    merged = aggregate.merge(both, np.tile(np.arange(count), len(parts)), count)
    (out,) = aggregate.finish(merged)
    return list(out.to_pylist())


def order(value: float | None) -> Any:
    return rank({"x": value})


@examples(25)
@given(ROWS, ROWS)
def test_the_value_that_is_chosen_does_not_depend_on_who_came_first(some: list[Row], more: list[Row]) -> None:
    rows = [[row for row in some + more if row[0] == group and row[2] is not None] for group in range(3)]
    by_value = [sorted(mine, key=lambda row: order(row[2])) for mine in rows]
    by_time = [sorted(mine, key=lambda row: (row[1], order(row[2]))) for mine in rows]
    for aggregate, chosen, end in (
        (extremes.Min("x"), by_value, 0),
        (extremes.Max("x"), by_value, -1),
        (extremes.Any("x"), by_value, -1),
        (extremes.First("x"), by_time, 0),
        (extremes.Last("x"), by_time, -1),
    ):
        expected = [mine[end][2] if mine else None for mine in chosen]
        assert repr(played(aggregate, [some, more], 3)) == repr(expected)
        assert repr(played(aggregate, [more, some], 3)) == repr(expected)


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.int64(), [FOREVER, 0, NEVER]),
        (pa.int8(), [127, 0, -128]),
        (pa.float32(), [1.5, 0.25, -2.5]),
        (pa.date32(), [5, 0, -5]),
        (pa.timestamp("us", "UTC"), [7, 0, -7]),
        (pa.bool_(), [True, True, False]),
        (pa.string(), ["z", "ab", ""]),
        (pa.binary(), [b"\xff", b"a", b""]),
    ],
    ids=str,
)
def test_every_type_keeps_its_values_and_its_order(kind: pa.DataType, values: list[Any]) -> None:
    column = pa.array(values, kind)
    rows = pa.table({"x": column})
    assert extremes.Max("x").over(rows) == [column[0].as_py()]
    assert extremes.Min("x").over(rows) == [column[-1].as_py()]
    assert extremes.Max("x").output("top", rows.schema) == [pa.field("top", kind)]


def test_a_value_of_the_first_or_last_of_all_times_is_a_value() -> None:
    rows = pa.table({"x": ["a"]})
    for at in (NEVER + 1, FOREVER):
        assert extremes.First("x").over(rows, np.array([at])) == ["a"]
        assert extremes.Last("x").over(rows, np.array([at])) == ["a"]


def test_any_takes_what_has_no_order_and_always_tells_the_same() -> None:
    lists = [["b"], ["a", "c"], None]
    told = {repr(extremes.Any("x").over(pa.table({"x": [*lists[n:], *lists[:n]]}))) for n in range(3)}
    assert len(told) == 1
    free = parse("free VARIANT")
    assert is_variant(extremes.Any("free").output("one", free)[0])
