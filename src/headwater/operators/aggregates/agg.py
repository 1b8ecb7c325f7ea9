"""The aggregates of windows, as users write them: ``from headwater import agg``, then ``agg.count()``.

Each makes a declaration, which a window or ``tables.group`` takes as ``name=agg.count()``. Results do not
depend on the order or the split of rows, but for ``quantile`` and ``top_k``, which say so. ``over`` applies
one to an Arrow table. ``docs/operators/aggregates.md`` tells what each means, to the last null.

Invariant: what can be refused without knowing the columns is refused here, at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from headwater import durations
from headwater.errors import UsageError
from headwater.operators.aggregates.aggregate import Aggregate
from headwater.operators.aggregates.bloom import Bloom, may_contain
from headwater.operators.aggregates.extremes import Any, First, Last, Max, Min
from headwater.operators.aggregates.filtered import filtered
from headwater.operators.aggregates.holdings import Collect, Distinct, ExactQuantile
from headwater.operators.aggregates.rate import Rate
from headwater.operators.aggregates.sketches import ApproxDistinct, Quantile
from headwater.operators.aggregates.top_k import TopK
from headwater.operators.aggregates.totals import Count, Mean, Stddev, Sum, Variance

__all__ = [
    "Aggregate",
    "any",
    "approx_distinct",
    "bloom",
    "collect",
    "count",
    "distinct",
    "exact_quantile",
    "first",
    "last",
    "max",
    "may_contain",
    "mean",
    "min",
    "quantile",
    "rate",
    "stddev",
    "sum",
    "top_k",
    "variance",
]

Shares = float | Sequence[float]


def count(column: str | None = None, *, where: str | None = None) -> Aggregate:
    """Count the rows, or those in which a column is not null.

    - ``column=None``: of any type; without it all rows count.
    - ``where=None``: a condition, an expression of Spark SQL; only rows for which it is true count.

    Out: BIGINT, never null. State: a number for each group.

    >>> import pyarrow as pa
    >>> rows = pa.table({"n": [1, None]})
    >>> count().over(rows), count("n").over(rows)
    ([2], [1])
    """
    return filtered(Count(column), where)


def sum(column: str, *, where: str | None = None) -> Aggregate:
    """Add numbers, without rounding on the way: the nearest value to the true sum, in any order.

    - ``column``: numbers. Nulls are passed over.
    - ``where=None``: a condition, an expression of Spark SQL; only rows for which it is true count.

    Out: BIGINT of integers, and a sum that does not fit it is an error; DECIMAL(38, s) of decimals; DOUBLE of
    floats. Null where there is nothing but nulls. State: a few numbers for each group; of floats up to 300
    bytes.

    >>> import pyarrow as pa
    >>> sum("x").over(pa.table({"x": [1e100, 1.0, -1e100]}))
    [1.0]
    """
    return filtered(Sum(column), where)


def mean(column: str, *, where: str | None = None) -> Aggregate:
    """Take the mean of numbers: the true sum by the count, rounded once.

    - ``column``: numbers. Nulls are passed over.
    - ``where=None``: a condition, an expression of Spark SQL; only rows for which it is true count.

    Out: DECIMAL(38, s + 4) of decimals, DOUBLE of other numbers. Null where there is nothing but nulls.
    State: a few numbers for each group; of floats up to 300 bytes.

    >>> import pyarrow as pa
    >>> mean("n").over(pa.table({"n": [1, 2, None]}))
    [1.5]
    """
    return filtered(Mean(column), where)


def rate(
    column: str | None = None, per: str | timedelta = "1 second", *, where: str | None = None
) -> Aggregate:
    """Count the rows, or add a column of numbers, for each ``per`` that the window is long.

    - ``column=None``: numbers to add, nulls passed over; without it rows are counted.
    - ``per="1 second"``: the length of time that the rate is told for.
    - ``where=None``: a condition, an expression of Spark SQL; only rows for which it is true count.

    Out: DOUBLE: the exact count or sum by the length of the whole window, rounded once; also where the
    window is not finished. Null where the column has nothing but nulls. Sessions refuse it, for their
    lengths differ.
    State: as ``count`` or ``sum``.

    >>> import pyarrow as pa
    >>> from datetime import timedelta
    >>> rows = pa.table({"bytes": [600, 300, None]})
    >>> minute = timedelta(minutes=1)
    >>> rate().within(minute).over(rows), rate("bytes", per="1 hour").within(minute).over(rows)
    ([0.05], [54000.0])
    """
    return filtered(Rate(column, durations.interval(per)), where)


def variance(column: str, *, where: str | None = None) -> Aggregate:
    """Take the variance of numbers as a sample, as Spark's ``var_samp``.

    - ``column``: numbers. Nulls are passed over.
    - ``where=None``: a condition, an expression of Spark SQL; only rows for which it is true count.

    Out: DOUBLE; null for less than two values. State: about 60 bytes for each group, up to 900.

    >>> import pyarrow as pa
    >>> variance("x").over(pa.table({"x": [1.0, 2.0, 3.0]}))
    [1.0]
    """
    return filtered(Variance(column), where)


def stddev(column: str, *, where: str | None = None) -> Aggregate:
    """Take the standard deviation of numbers as a sample, as Spark's ``stddev_samp``.

    - ``column``: numbers. Nulls are passed over.
    - ``where=None``: a condition, an expression of Spark SQL; only rows for which it is true count.

    Out: DOUBLE; null for less than two values. State: about 60 bytes for each group, up to 900.

    >>> import pyarrow as pa
    >>> stddev("x").over(pa.table({"x": [1.0, 3.0, 5.0]}))
    [2.0]
    """
    return filtered(Stddev(column), where)


def min(column: str, *, where: str | None = None) -> Aggregate:
    """Take the least value: -0.0 is before 0.0, and NaN after all numbers.

    - ``column``: numbers, texts, bytes, booleans, dates or times. Nulls are passed over.
    - ``where=None``: a condition, an expression of Spark SQL; only rows for which it is true count.

    Out: the type of the column; null where there is nothing but nulls. State: a value for each group.

    >>> import pyarrow as pa
    >>> min("s").over(pa.table({"s": ["b", None, "a"]}))
    ['a']
    """
    return filtered(Min(column), where)


def max(column: str, *, where: str | None = None) -> Aggregate:
    """Take the greatest value: -0.0 is before 0.0, and NaN after all numbers.

    - ``column``: numbers, texts, bytes, booleans, dates or times. Nulls are passed over.
    - ``where=None``: a condition, an expression of Spark SQL; only rows for which it is true count.

    Out: the type of the column; null where there is nothing but nulls. State: a value for each group.

    >>> import pyarrow as pa
    >>> max("s").over(pa.table({"s": ["b", None, "a"]}))
    ['b']
    """
    return filtered(Max(column), where)


def any(column: str, *, where: str | None = None) -> Aggregate:
    """Take a value of any type, the same one in any order: the greatest. Of booleans: whether any is true.

    - ``column``: of any type. Nulls are passed over.
    - ``where=None``: a condition, an expression of Spark SQL; only rows for which it is true count.

    Out: the type of the column; null where there is nothing but nulls. State: a value for each group.

    >>> import pyarrow as pa
    >>> any("ok").over(pa.table({"ok": [False, True, None]}))
    [True]
    """
    return filtered(Any(column), where)


def first(column: str, *, where: str | None = None) -> Aggregate:
    """Take the earliest value by event time; of equal times the least.

    - ``column``: of any type. Rows in which it is null are passed over.
    - ``where=None``: a condition, an expression of Spark SQL; only rows for which it is true count.

    Out: the type of the column; null where there is nothing but nulls. State: a value and its time for each
    group.

    >>> import numpy as np, pyarrow as pa
    >>> first("s").over(pa.table({"s": ["late", "early"]}), at=np.array([2, 1]))
    ['early']
    """
    return filtered(First(column), where)


def last(column: str, *, where: str | None = None) -> Aggregate:
    """Take the latest value by event time; of equal times the greatest.

    - ``column``: of any type. Rows in which it is null are passed over.
    - ``where=None``: a condition, an expression of Spark SQL; only rows for which it is true count.

    Out: the type of the column; null where there is nothing but nulls. State: a value and its time for each
    group.

    >>> import numpy as np, pyarrow as pa
    >>> last("s").over(pa.table({"s": ["late", "early"]}), at=np.array([2, 1]))
    ['late']
    """
    return filtered(Last(column), where)


def collect(column: str, limit: int = 100, *, where: str | None = None) -> Aggregate:
    """Collect the earliest values, in the order of event time and then of value.

    - ``column``: of any type. Nulls are passed over; a value that is there twice comes twice.
    - ``limit=100``: how many at the most.
    - ``where=None``: a condition, an expression of Spark SQL; only rows for which it is true count.

    Out: an ARRAY; null where there is nothing but nulls. State: up to ``limit`` values for each group.

    >>> import numpy as np, pyarrow as pa
    >>> collect("s", limit=2).over(pa.table({"s": ["c", "a", "b"]}), at=np.array([3, 1, 2]))
    [['a', 'b']]
    """
    return filtered(Collect(column, _positive("collect", "limit", limit)), where)


def distinct(column: str, *, where: str | None = None) -> Aggregate:
    """Count distinct values exactly.

    - ``column``: of any type. Nulls are passed over; NaN equals NaN, and 0.0 equals -0.0.
    - ``where=None``: a condition, an expression of Spark SQL; only rows for which it is true count.

    Out: BIGINT, never null. State: every distinct value of each group; for more, ``approx_distinct``.

    >>> import pyarrow as pa
    >>> distinct("s").over(pa.table({"s": ["a", "b", "a", None]}))
    [2]
    """
    return filtered(Distinct(column), where)


def exact_quantile(column: str, q: Shares, *, where: str | None = None) -> Aggregate:
    """Take the least value that at least a share ``q`` of the values do not exceed, as ``percentile_disc``.

    - ``column``: what ``min`` takes. Nulls are passed over.
    - ``q``: a share from 0 to 1, or several, ``[0.5, 0.99]``; taken to six decimal places.
    - ``where=None``: a condition, an expression of Spark SQL; only rows for which it is true count.

    Out: the type of the column; an ARRAY where ``q`` is several shares; null where there is nothing but
    nulls.
    State: every value of each group; for more, ``quantile``.

    >>> import pyarrow as pa
    >>> exact_quantile("n", [0.5, 0.9]).over(pa.table({"n": [4, 1, 3, 2]}))
    [[2, 4]]
    """
    return filtered(ExactQuantile(column, _shares("exact_quantile", q)), where)


def approx_distinct(
    column: str, error: float = 0.02, bounds: bool = False, *, where: str | None = None
) -> Aggregate:
    """Estimate how many distinct values there are, in a few kilobytes: HyperLogLog.

    - ``column``: of any type. Nulls are passed over.
    - ``error=0.02``: the relative standard error, from 0.0008 to 0.1.
    - ``bounds=False``: True adds two columns, ``NAME_low`` and ``NAME_high``: the true count is between
      them in 95 of 100 cases.
    - ``where=None``: a condition, an expression of Spark SQL; only rows for which it is true count.

    Out: BIGINT. It depends on the distinct values alone. State: up to 2 kB for each group at an error of
    0.02, four times that at half the error.

    >>> import pyarrow as pa
    >>> approx_distinct("n", bounds=True).over(pa.table({"n": [1, 2, 2, None]}))
    [2, 2, 3]
    """
    return filtered(ApproxDistinct(column, _error("approx_distinct", error, 0.0008, 0.1), bounds), where)


def quantile(
    column: str, q: Shares, error: float = 0.01, bounds: bool = False, *, where: str | None = None
) -> Aggregate:
    """Estimate the value that a share ``q`` of the values do not exceed, in a few kilobytes: KLL.

    - ``column``: numbers. Nulls and NaN are passed over.
    - ``q``: a share from 0 to 1, or several, ``[0.5, 0.99]``.
    - ``error=0.01``: that of the rank, from 0.0001 to 0.2: the value has a true rank of ``q`` ± ``error``
      in 99 of 100 cases.
    - ``bounds=False``: True adds two columns, ``NAME_low`` and ``NAME_high``: the values at these ranks.
    - ``where=None``: a condition, an expression of Spark SQL; only rows for which it is true count.

    Out: DOUBLE, or an ARRAY where ``q`` is several shares. Up to ``2.5 / error`` values it is exact; of
    more, it depends on chance and on the split, within the error. State: up to 7 kB for each group at an
    error of 0.01, twice that at half the error.

    >>> import pyarrow as pa
    >>> quantile("n", 0.5).over(pa.table({"n": [1, 2, 3]}))
    [2.0]
    """
    return filtered(
        Quantile(column, _shares("quantile", q), _error("quantile", error, 0.0001, 0.2), bounds), where
    )


def top_k(column: str, k: int = 10, bounds: bool = False, *, where: str | None = None) -> Aggregate:
    """Find the most frequent values and their counts.

    - ``column``: numbers, texts, booleans, dates or times. Nulls are passed over.
    - ``k=10``: how many values.
    - ``bounds=False``: True adds two columns, ``NAME_low`` and ``NAME_high``: ARRAYs of the bounds of each
      count, which always hold.
    - ``where=None``: a condition, an expression of Spark SQL; only rows for which it is true count.

    Out: an ARRAY of STRUCT<value, count>, the most frequent first; of equal counts the least value. Up to 768
    distinct values, or ``12 * k``, are counted exactly; of more, counts may be too high, never too low, and
    depend on the split. State: that many values and counts for each group.

    >>> import pyarrow as pa
    >>> top_k("s", k=1).over(pa.table({"s": ["a", "b", "a"]}))
    [[{'value': 'a', 'count': 2}]]
    """
    return filtered(TopK(column, _positive("top_k", "k", k), bounds), where)


def bloom(column: str, expected: int = 10_000, error: float = 0.01, *, where: str | None = None) -> Aggregate:
    """Make a Bloom filter of the values, which ``may_contain`` asks.

    - ``column``: anything but decimals and nested types. Nulls are passed over.
    - ``expected=10000``: how many distinct values a group may have for ``error`` to hold.
    - ``error=0.01``: the share of values that were not there of which it says that they may have been.
    - ``where=None``: a condition, an expression of Spark SQL; only rows for which it is true count.

    Out: BINARY; null where there is nothing but nulls. A value that was there is always told to be. State:
    the whole filter for each group, from the first row on: 12 kB by default.

    >>> import pyarrow as pa
    >>> (seen,) = bloom("n").over(pa.table({"n": [1, 2]}))
    >>> may_contain(seen, [2, 3])
    [True, False]
    """
    return filtered(
        Bloom(column, _positive("bloom", "expected", expected), _error("bloom", error, 1e-9, 0.5)), where
    )


def _shares(what: str, q: Shares) -> float | tuple[float, ...]:
    shares = [q] if isinstance(q, int | float) else list(q)
    for share in shares:
        if not 0 <= share <= 1:
            raise UsageError(f"{what} cannot tell quantile {share}", hint="a quantile is between 0 and 1")
    if not shares:
        raise UsageError(f"{what} is asked for no quantile", hint="name one between 0 and 1")
    return float(q) if isinstance(q, int | float) else tuple(float(share) for share in shares)


def _positive(what: str, argument: str, number: int) -> int:
    if isinstance(number, int) and number > 0:
        return number
    raise UsageError(f"{what} cannot have {argument} {number!r}", hint="it is a number from 1 on")


def _error(what: str, error: float, least: float, most: float) -> float:
    if isinstance(error, int | float) and least <= error <= most:
        return float(error)
    raise UsageError(f"{what} cannot have an error of {error!r}", hint=f"it is between {least} and {most}")
