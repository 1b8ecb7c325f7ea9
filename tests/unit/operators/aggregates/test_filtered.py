"""An aggregate with a condition tells what it tells of the rows that satisfy it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater import agg
from headwater.errors import UsageError

Make = Callable[..., agg.Aggregate]
KINDS: dict[str, Make] = {
    "count": agg.count,
    "count of a column": lambda **how: agg.count("n", **how),
    "sum": lambda **how: agg.sum("n", **how),
    "mean": lambda **how: agg.mean("x", **how),
    "rate": lambda **how: agg.rate(**how).within(timedelta(minutes=1)),
    "rate of a column": lambda **how: agg.rate("n", **how).within(timedelta(minutes=1)),
    "variance": lambda **how: agg.variance("x", **how),
    "stddev": lambda **how: agg.stddev("n", **how),
    "min": lambda **how: agg.min("x", **how),
    "max": lambda **how: agg.max("n", **how),
    "any": lambda **how: agg.any("n", **how),
    "first": lambda **how: agg.first("n", **how),
    "last": lambda **how: agg.last("x", **how),
    "collect": lambda **how: agg.collect("n", limit=3, **how),
    "distinct": lambda **how: agg.distinct("n", **how),
    "exact_quantile": lambda **how: agg.exact_quantile("n", 0.5, **how),
    "approx_distinct": lambda **how: agg.approx_distinct("n", **how),
    "quantile": lambda **how: agg.quantile("n", 0.5, **how),
    "top_k": lambda **how: agg.top_k("n", k=2, **how),
    "bloom": lambda **how: agg.bloom("n", expected=10, **how),
}
values = st.none() | st.integers(-3, 3)
records = st.lists(st.tuples(values, values, st.integers(0, 2)), max_size=12)
Row = tuple[Any, ...]
NONE = (None, None)


@pytest.mark.parametrize("kind", KINDS)
@given(records, records)
def test_it_is_the_aggregate_of_the_rows_that_satisfy_the_condition(
    kind: str, one: list[Row], two: list[Row]
) -> None:
    """In groups, over two steps, of which some have no such row."""
    parts = [[*one, *((*NONE, group) for group in range(3))], [*two, *((*NONE, group) for group in range(3))]]
    found = stepped(KINDS[kind](where="n > -2 AND other <> 1"), parts)
    rows = [(at, *row) for at, row in enumerate([*parts[0], *parts[1]])]
    for group in range(3):
        chosen = [
            r for r in rows if r[1] is not None and r[1] > -2 and r[2] not in (None, 1) and r[3] == group
        ]
        assert found[group] == expected(kind, chosen)


def satisfies(row: Row) -> bool:
    _, n, other, _ = row
    return n is not None and n > -2 and other not in (None, 1)


def expected(kind: str, chosen: list[Row]) -> list[Any]:
    if not chosen and kind in ("count", "rate"):
        return [0]
    some = chosen or [(0, *NONE, 0)]  # nothing but nulls
    return KINDS[kind]().over(table([row[1:] for row in some]), np.array([row[0] for row in some]))


def stepped(aggregate: agg.Aggregate, parts: list[list[Row]]) -> list[list[Any]]:
    """Aggregate rows of three groups in two steps."""
    done: list[list[pa.Array]] = []
    for part, start in zip(parts, (0, len(parts[0])), strict=True):
        rows = table(part)
        groups = rows.column("g").to_numpy()
        done.append(aggregate.partial(rows, np.arange(len(rows)) + start, groups, 3))
    partials = [pa.concat_arrays(pair) for pair in zip(*done, strict=True)]
    columns = aggregate.finish(aggregate.merge(partials, np.array([0, 1, 2, 0, 1, 2]), 3))
    return [[column[group].as_py() for column in columns] for group in range(3)]


def table(rows: list[tuple[Any, ...]]) -> pa.Table:
    n = pa.array([r[0] for r in rows], pa.int64())
    other = pa.array([r[1] for r in rows], pa.int64())
    return pa.table(
        {"n": n, "x": n.cast(pa.float64()), "other": other, "g": pa.array([r[2] for r in rows], pa.int64())}
    )


def test_a_condition_that_is_null_is_not_satisfied_and_one_without_columns_is_one() -> None:
    rows = pa.table({"n": [1, None, 3]})
    assert agg.count(where="n < 2").over(rows) == [1]
    assert agg.count(where="TRUE").over(rows) == [3]
    assert agg.sum("n", where="FALSE").over(rows) == [None]


def test_what_is_no_condition_is_refused() -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        agg.count(where="n <")
    schema = pa.schema({"n": pa.int64()})
    with pytest.raises(UsageError, match="is no condition"):
        agg.count(where="n + 1").output("x", schema)
    with pytest.raises(UsageError, match='unknown column "m"'):
        agg.count(where="m = 1").output("x", schema)
