"""Counts, sums, means and variances, exact until they are told.

Invariant: what is told is the result over the exact values, rounded once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from headwater.operators.aggregates import digits
from headwater.operators.aggregates.aggregate import Aggregate, check, is_any, is_number
from headwater.operators.aggregates.amounts import amount, amount_of, sorted_out, united
from headwater.operators.aggregates.by_group import added, counted, present, valid
from headwater.operators.columns import one_array
from headwater.operators.event_time import Times
from headwater.operators.groups import Numbers


@dataclass(frozen=True)
class Count(Aggregate):
    """How many rows there are, or how many in which a column is not null."""

    column: str | None = None

    def output(self, name: str, schema: pa.Schema) -> list[pa.Field]:
        """Return a BIGINT, never null."""
        if self.column is not None:
            check("count", self.column, schema, is_any)
        return [pa.field(name, pa.int64(), nullable=False)]

    def state(self, name: str, schema: pa.Schema) -> list[pa.Field]:
        """Return the count."""
        return [_count_field(name)]

    def partial(self, rows: pa.Table, at: Times, groups: Numbers, count: int) -> list[pa.Array]:
        """Count rows."""
        if self.column is not None and rows.column(self.column).null_count:
            groups = groups[valid(one_array(rows.column(self.column)))]
        return [pa.array(counted(groups, count))]

    def merge(self, partials: list[pa.Array], groups: Numbers, count: int) -> list[pa.Array]:
        """Add counts."""
        return [_counts(partials, groups, count)]

    def finish(self, partials: list[pa.Array]) -> list[pa.Array]:
        """Return the counts."""
        return partials


@dataclass(frozen=True)
class Sum(Aggregate):
    """The sum of a column of numbers."""

    column: str

    def output(self, name: str, schema: pa.Schema) -> list[pa.Field]:
        """Return BIGINT for integers, DECIMAL for decimals, DOUBLE for floats."""
        kind = check("sum", self.column, schema, is_number)
        return [pa.field(name, amount(kind).total_type(kind))]

    def state(self, name: str, schema: pa.Schema) -> list[pa.Field]:
        """Return the count of values, and their exact sum."""
        kind = schema.field(self.column).type
        return [_count_field(name), *amount(kind).fields(name, kind)]

    def partial(self, rows: pa.Table, at: Times, groups: Numbers, count: int) -> list[pa.Array]:
        """Add values."""
        values, groups, _ = present(rows, self.column, groups)
        return [pa.array(counted(groups, count)), *amount(values.type).partial(values, groups, count)]

    def merge(self, partials: list[pa.Array], groups: Numbers, count: int) -> list[pa.Array]:
        """Add sums."""
        return [_counts(partials, groups, count), *amount_of(partials[1:]).merge(partials[1:], groups, count)]

    def finish(self, partials: list[pa.Array]) -> list[pa.Array]:
        """Return the sums."""
        return [amount_of(partials[1:]).totals(partials[0].to_numpy(), partials[1:])]


@dataclass(frozen=True)
class Mean(Sum):
    """The mean of a column of numbers."""

    def output(self, name: str, schema: pa.Schema) -> list[pa.Field]:
        """Return DECIMAL for decimals, DOUBLE for other numbers."""
        kind = check("mean", self.column, schema, is_number)
        return [pa.field(name, amount(kind).mean_type(kind))]

    def finish(self, partials: list[pa.Array]) -> list[pa.Array]:
        """Return the means."""
        return [amount_of(partials[1:]).means(partials[0].to_numpy(), partials[1:])]


@dataclass(frozen=True)
class Variance(Aggregate):
    """The variance of a sample: the squares of the distances from the mean, by one less than there are.

    It is that of the values as DOUBLE, as in Spark. Of a single value there is none.
    """

    column: str

    def output(self, name: str, schema: pa.Schema) -> list[pa.Field]:
        """Return DOUBLE."""
        check(type(self).__name__.lower(), self.column, schema, is_number)
        return [pa.field(name, pa.float64())]

    def state(self, name: str, schema: pa.Schema) -> list[pa.Field]:
        """Return count and flags, the sum of the values, and that of their squares."""
        flags = pa.field(f"{name}.flags", pa.int8())
        return [_count_field(name), flags, *digits.fields(name), *digits.fields(f"{name}.squares")]

    def partial(self, rows: pa.Table, at: Times, groups: Numbers, count: int) -> list[pa.Array]:
        """Add values and squares."""
        values, groups, _ = present(rows, self.column, groups)
        counts = pa.array(counted(groups, count))
        floats, finite, flags = sorted_out(values, groups, count)
        sums, squares = digits.summed(floats, finite, count), digits.squared(floats, finite, count)
        return [counts, flags, *digits.stored(sums), *digits.stored(squares)]

    def merge(self, partials: list[pa.Array], groups: Numbers, count: int) -> list[pa.Array]:
        """Add sums and squares."""
        sums, squares = (digits.merged(part, groups, count) for part in (partials[2:4], partials[4:]))
        flags = united(partials[1], groups, count)
        return [_counts(partials, groups, count), flags, *digits.stored(sums), *digits.stored(squares)]

    def finish(self, partials: list[pa.Array]) -> list[pa.Array]:
        """Return the variances."""
        return [pa.array(self._variances(partials), pa.float64())]

    def _variances(self, partials: list[pa.Array]) -> list[float | None]:
        sums, squares = digits.numbers(partials[2:4]), digits.numbers(partials[4:])
        counts, flags = partials[0].to_pylist(), partials[1].to_pylist()
        return [
            None if count < 2 else math.nan if odd else _variance(count, total, square)
            for count, odd, total, square in zip(counts, flags, sums, squares, strict=True)
        ]


@dataclass(frozen=True)
class Stddev(Variance):
    """The standard deviation of a sample: the root of its variance."""

    def finish(self, partials: list[pa.Array]) -> list[pa.Array]:
        """Return the standard deviations."""
        return [pa.array([v if v is None else math.sqrt(v) for v in self._variances(partials)], pa.float64())]


def _variance(count: int, total: tuple[int, int], squares: tuple[int, int]) -> float:
    """Return (count * squares - total**2) / (count * (count - 1)), rounded once."""
    exponent = min(2 * total[1], squares[1])
    left = count * squares[0] << (squares[1] - exponent)
    right = total[0] * total[0] << (2 * total[1] - exponent)
    return digits.ratio(left - right, exponent, count * (count - 1))


def _count_field(name: str) -> pa.Field:
    return pa.field(f"{name}.count", pa.int64())


def _counts(partials: list[pa.Array], groups: Numbers, count: int) -> pa.Array:
    return pa.array(added(np.asarray(partials[0]), groups, count))
