"""Aggregates of groups whose rows come and go.

An aggregate is a declaration; what is known of a group is in columns of its row, which a tally changes
with the rows that enter the group or leave it. Aggregates of one column share a tally where they can.

Invariant: what is read of a group depends on the rows that are in it now, and on nothing else: not on
their order, nor on rows that have left.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import pyarrow as pa

from headwater.errors import UsageError
from headwater.operators.tables.ranks import Ranks
from headwater.operators.tables.tallies import Ends, Totals, ValueCounts

_t = pa.types
Columns = Sequence[pa.Array]


@dataclass(frozen=True)
class Retractable(ABC):
    """An aggregate of a column that stays right when rows go."""

    column: str
    """Empty where rows are counted."""
    where: str | None = field(default=None, kw_only=True)
    """The condition that rows must satisfy to count."""
    tally: ClassVar[type[Any]]

    @property
    def source(self) -> str:
        """The column that holds what is aggregated: that of the table, or one that is null in other rows."""
        return self.column if self.where is None else f"{self.column} WHERE {self.where}"

    @property
    def name(self) -> str:
        """What users call it."""
        return type(self).__name__.lower()

    @property
    def ends(self) -> Ends:
        """How many of the least and of the greatest values it reads."""
        return Ends()

    @abstractmethod
    def type(self, kind: pa.DataType) -> pa.DataType | None:
        """Return the type of the result for a type of values; None for one that it does not take."""

    @abstractmethod
    def read(self, tally: Any, columns: Columns) -> pa.Array:
        """Return the results of groups, given the columns of the tally."""

    def result(self, kind: pa.DataType) -> pa.DataType:
        """Return the type of the result for a type of values, or refuse it."""
        found = self.type(kind)
        if found is None:
            raise UsageError(f'{self.name}("{self.column}") cannot take values of type {kind}')
        return found


@dataclass(frozen=True)
class Count(Retractable):
    """How many rows, or how many values that are not null."""

    tally = ValueCounts

    def type(self, kind: pa.DataType) -> pa.DataType:
        """Return BIGINT."""
        return pa.int64()

    def read(self, tally: ValueCounts, columns: Columns) -> pa.Array:
        """Return the counts."""
        return columns[0]


@dataclass(frozen=True)
class Sum(Retractable):
    """The exact sum, rounded once; null without values, or where it does not fit its type."""

    tally = Totals

    def type(self, kind: pa.DataType) -> pa.DataType | None:
        """Return the widest type of its kind."""
        if _t.is_decimal(kind):
            return pa.decimal128(kind.precision + 10 if kind.precision < 28 else 38, kind.scale)
        return pa.int64() if _t.is_integer(kind) else pa.float64() if _t.is_floating(kind) else None

    def read(self, tally: Totals, columns: Columns) -> pa.Array:
        """Return the sums."""
        return tally.sums(columns, self.result(tally.kind))


@dataclass(frozen=True)
class Mean(Retractable):
    """The exact sum divided by the count, rounded once; null without values."""

    tally = Totals

    def type(self, kind: pa.DataType) -> pa.DataType | None:
        """Return DOUBLE."""
        return pa.float64() if _t.is_decimal(kind) or _t.is_integer(kind) or _t.is_floating(kind) else None

    def read(self, tally: Totals, columns: Columns) -> pa.Array:
        """Return the means."""
        return tally.means(columns)


@dataclass(frozen=True)
class Min(Retractable):
    """The least value; null without values. NaN is greater than all numbers."""

    tally = Ranks

    def type(self, kind: pa.DataType) -> pa.DataType | None:
        """Return the type of the values, if they have an order."""
        return None if _t.is_nested(kind) or _t.is_null(kind) else kind

    @property
    def ends(self) -> Ends:
        """The least value."""
        return Ends(least=1)

    def read(self, tally: Ranks, columns: Columns) -> pa.Array:
        """Return the least values."""
        return tally.least(columns)


@dataclass(frozen=True)
class Max(Min):
    """The greatest value; null without values. NaN is greater than all numbers."""

    @property
    def ends(self) -> Ends:
        """The greatest value."""
        return Ends(most=1)

    def read(self, tally: Ranks, columns: Columns) -> pa.Array:
        """Return the greatest values."""
        return tally.most(columns)


@dataclass(frozen=True)
class Greatest(Min):
    """The greatest values, the greatest first; equal ones as often as they are there."""

    k: int = 1

    @property
    def name(self) -> str:
        """What users call it."""
        return "greatest"

    @property
    def ends(self) -> Ends:
        """As many of the greatest values as are asked for."""
        return Ends(most=self.k)

    def type(self, kind: pa.DataType) -> pa.DataType | None:
        """Return an array of the type of the values."""
        found = super().type(kind)
        return None if found is None else pa.list_(found)

    def read(self, tally: Ranks, columns: Columns) -> pa.Array:
        """Return the greatest values."""
        return tally.greatest(columns, self.k)


def count(column: str | None = None) -> Count:
    """Count rows, or the values of a column that are not null.

    >>> count("click")
    Count(column='click', where=None)
    """
    return Count(column or "")


def sum(column: str) -> Sum:
    """Add up the values of a column, exactly."""
    return Sum(column)


def mean(column: str) -> Mean:
    """Return the mean of a column's values."""
    return Mean(column)


def min(column: str) -> Min:
    """Return the least of a column's values."""
    return Min(column)


def max(column: str) -> Max:
    """Return the greatest of a column's values."""
    return Max(column)


def greatest(column: str, k: int) -> Greatest:
    """Return the ``k`` greatest of a column's values, the greatest first.

    >>> greatest("score", 3)
    Greatest(column='score', where=None, k=3)
    """
    if k < 1:
        raise UsageError(f"greatest of {k} values has none", hint="k is 1 or more")
    return Greatest(column, k)
