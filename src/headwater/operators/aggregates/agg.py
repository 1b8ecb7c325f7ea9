"""The aggregates of windows, as users write them: ``from headwater import agg``, then ``agg.count()``.

Each makes a declaration; ``docs/operators/aggregates.md`` tells what each means, to the last null.

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


def count(column: str | None = None) -> Aggregate:
    """Count the rows, or those in which a column is not null. BIGINT, never null.

    >>> import pyarrow as pa
    >>> rows = pa.table({"n": [1, None]})
    >>> count().over(rows), count("n").over(rows)
    ([2], [1])
    """
    return Count(column)


def sum(column: str) -> Aggregate:
    """Add numbers, without rounding on the way: the nearest value to the true sum, in any order.

    Integers give BIGINT, and a sum that does not fit it is an error; decimals DECIMAL(38, s); floats
    DOUBLE. Nothing but nulls gives null.

    >>> import pyarrow as pa
    >>> sum("x").over(pa.table({"x": [1e100, 1.0, -1e100]}))
    [1.0]
    """
    return Sum(column)


def mean(column: str) -> Aggregate:
    """Take the mean of numbers: the true sum by the count, rounded once.

    Decimals give DECIMAL(38, s + 4), other numbers DOUBLE. Nothing but nulls gives null.

    >>> import pyarrow as pa
    >>> mean("n").over(pa.table({"n": [1, 2, None]}))
    [1.5]
    """
    return Mean(column)


def rate(column: str | None = None, per: str | timedelta = "1 second") -> Aggregate:
    """Count the rows, or add a column of numbers, for each ``per`` that the window is long. DOUBLE.

    The exact count or sum by the length of the window, rounded once; also where the window is not
    finished. Nothing but nulls in the column gives null. Sessions refuse it: their lengths differ.

    >>> import pyarrow as pa
    >>> from datetime import timedelta
    >>> rows = pa.table({"bytes": [600, 300, None]})
    >>> minute = timedelta(minutes=1)
    >>> rate().within(minute).over(rows), rate("bytes", per="1 hour").within(minute).over(rows)
    ([0.05], [54000.0])
    """
    return Rate(column, durations.interval(per))


def variance(column: str) -> Aggregate:
    """Take the variance of numbers as a sample, as Spark's ``var_samp``. DOUBLE; null for less than two.

    >>> import pyarrow as pa
    >>> variance("x").over(pa.table({"x": [1.0, 2.0, 3.0]}))
    [1.0]
    """
    return Variance(column)


def stddev(column: str) -> Aggregate:
    """Take the standard deviation of numbers as a sample, as Spark's ``stddev_samp``.

    DOUBLE; null for less than two.

    >>> import pyarrow as pa
    >>> stddev("x").over(pa.table({"x": [1.0, 3.0, 5.0]}))
    [2.0]
    """
    return Stddev(column)


def min(column: str) -> Aggregate:
    """Take the least value: -0.0 is before 0.0, and NaN after all numbers. Nothing but nulls gives null.

    >>> import pyarrow as pa
    >>> min("s").over(pa.table({"s": ["b", None, "a"]}))
    ['a']
    """
    return Min(column)


def max(column: str) -> Aggregate:
    """Take the greatest value: -0.0 is before 0.0, and NaN after all numbers. Nothing but nulls gives null.

    >>> import pyarrow as pa
    >>> max("s").over(pa.table({"s": ["b", None, "a"]}))
    ['b']
    """
    return Max(column)


def any(column: str) -> Aggregate:
    """Take a value of any type, the same one in any order: the greatest. Of booleans: whether any is true.

    >>> import pyarrow as pa
    >>> any("ok").over(pa.table({"ok": [False, True, None]}))
    [True]
    """
    return Any(column)


def first(column: str) -> Aggregate:
    """Take the earliest value by event time, passing over nulls; of equal times the least.

    >>> import numpy as np, pyarrow as pa
    >>> first("s").over(pa.table({"s": ["late", "early"]}), at=np.array([2, 1]))
    ['early']
    """
    return First(column)


def last(column: str) -> Aggregate:
    """Take the latest value by event time, passing over nulls; of equal times the greatest.

    >>> import numpy as np, pyarrow as pa
    >>> last("s").over(pa.table({"s": ["late", "early"]}), at=np.array([2, 1]))
    ['late']
    """
    return Last(column)


def collect(column: str, limit: int = 100) -> Aggregate:
    """Collect the earliest values, at most ``limit``, in the order of event time and then of value.

    An ARRAY; nothing but nulls gives null.

    >>> import numpy as np, pyarrow as pa
    >>> collect("s", limit=2).over(pa.table({"s": ["c", "a", "b"]}), at=np.array([3, 1, 2]))
    [['a', 'b']]
    """
    return Collect(column, _positive("collect", "limit", limit))


def distinct(column: str) -> Aggregate:
    """Count distinct values exactly: it keeps every one of them. BIGINT, never null.

    >>> import pyarrow as pa
    >>> distinct("s").over(pa.table({"s": ["a", "b", "a", None]}))
    [2]
    """
    return Distinct(column)


def exact_quantile(column: str, q: Shares) -> Aggregate:
    """Take the least value that at least a share ``q`` of the values do not exceed: it keeps all values.

    Of the type of the column, as ``percentile_disc``; an ARRAY where ``q`` is several shares. Nothing
    but nulls gives null.

    >>> import pyarrow as pa
    >>> exact_quantile("n", [0.5, 0.9]).over(pa.table({"n": [4, 1, 3, 2]}))
    [[2, 4]]
    """
    return ExactQuantile(column, _shares("exact_quantile", q))


def approx_distinct(column: str, error: float = 0.02, bounds: bool = False) -> Aggregate:
    """Estimate how many distinct values there are, in a few kilobytes: HyperLogLog.

    ``error`` is the standard error, relative. With ``bounds`` two more columns, ``…_low`` and
    ``…_high``, hold the true count in 95 of 100 cases. The estimate depends on the values alone.

    >>> import pyarrow as pa
    >>> approx_distinct("n", bounds=True).over(pa.table({"n": [1, 2, 2, None]}))
    [2, 2, 3]
    """
    return ApproxDistinct(column, _error("approx_distinct", error, 0.0008, 0.1), bounds)


def quantile(column: str, q: Shares, error: float = 0.01, bounds: bool = False) -> Aggregate:
    """Estimate the value that a share ``q`` of the values do not exceed, in a few kilobytes: KLL.

    DOUBLE, or an ARRAY where ``q`` is several shares. ``error`` is that of the rank: the value told has
    a true rank of ``q`` ± ``error`` in 99 of 100 cases. With ``bounds`` two more columns, ``…_low`` and
    ``…_high``, are the values at these ranks. Few values, up to ``2.5 / error``, are told exactly; of more,
    what is told depends on chance and on the split: it is not exact.

    >>> import pyarrow as pa
    >>> quantile("n", 0.5).over(pa.table({"n": [1, 2, 3]}))
    [2.0]
    """
    return Quantile(column, _shares("quantile", q), _error("quantile", error, 0.0001, 0.2), bounds)


def top_k(column: str, k: int = 10, bounds: bool = False) -> Aggregate:
    """Find the most frequent values and their counts: an ARRAY of STRUCT<value, count>.

    Of equal counts the least value comes first. With ``bounds`` two more columns, ``…_low`` and
    ``…_high``, are arrays of the bounds of each count, which always hold. Up to 768 distinct values, or
    ``12 * k``, are counted exactly; of more, what is told depends on the split: it is not exact.

    >>> import pyarrow as pa
    >>> top_k("s", k=1).over(pa.table({"s": ["a", "b", "a"]}))
    [[{'value': 'a', 'count': 2}]]
    """
    return TopK(column, _positive("top_k", "k", k), bounds)


def bloom(column: str, expected: int = 10_000, error: float = 0.01) -> Aggregate:
    """Make a Bloom filter of the values, to be asked by `may_contain`. BINARY; nothing but nulls gives null.

    It says yes to every value that was there, and to a share ``error`` of others while there are no
    more than ``expected`` distinct ones. Every group keeps the whole filter: 12 kB by default.

    >>> import pyarrow as pa
    >>> (seen,) = bloom("n").over(pa.table({"n": [1, 2]}))
    >>> may_contain(seen, [2, 3])
    [True, False]
    """
    return Bloom(column, _positive("bloom", "expected", expected), _error("bloom", error, 1e-9, 0.5))


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
