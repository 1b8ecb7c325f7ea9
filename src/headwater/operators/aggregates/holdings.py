"""Aggregates that hold values: the earliest ones, the distinct ones, or all of them.

Their partial results grow with what they hold, and merging one costs what it holds: `Collect` is
bounded; the others are for groups that are known to be small, and have a sketch for those that are not.

Invariant: what is held is told by the values and times alone, in a total order.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cache

import numpy as np
import pyarrow as pa

from headwater.operators.aggregates.aggregate import Aggregate, check, is_any, is_ordered
from headwater.operators.aggregates.by_group import (
    Mask,
    chosen,
    lengths,
    listed,
    lists_of,
    present,
    ranks_within,
)
from headwater.operators.event_time import Times
from headwater.operators.groups import Numbers, alike, firsts, number, pairs, text
from headwater.operators.order import order, stable

_FINEST = 10**6
"""Quantiles are told apart to six decimal places; so their ranks are computed in integers."""


@dataclass(frozen=True)
class Collect(Aggregate):
    """The earliest values of a column, in the order of event time, and of equal times in their own."""

    column: str
    limit: int = 100

    def output(self, name: str, schema: pa.Schema) -> list[pa.Field]:
        """Return an array of the type of the column."""
        return [pa.field(name, pa.list_(check("collect", self.column, schema, _is_listed)))]

    def state(self, name: str, schema: pa.Schema) -> list[pa.Field]:
        """Return the values, and the time of each."""
        kind = schema.field(self.column).type
        times = pa.field(f"{name}.times", pa.list_(pa.int64()))
        return [times, pa.field(f"{name}.values", pa.list_(kind))]

    def partial(self, rows: pa.Table, at: Times, groups: Numbers, count: int) -> list[pa.Array]:
        """Take the earliest rows of each group."""
        values, groups, places = present(rows, self.column, groups)
        return self._earliest(values, at if places is None else at[places], groups, count)

    def merge(self, partials: list[pa.Array], groups: Numbers, count: int) -> list[pa.Array]:
        """Take the earliest of those that were taken."""
        at, values = (part.flatten() for part in partials)
        return self._earliest(values, at.to_numpy(), groups[lists_of(partials[1])], count)

    def finish(self, partials: list[pa.Array]) -> list[pa.Array]:
        """Return the values; null for none."""
        values = partials[1]
        return [listed(values.flatten(), lists_of(values), len(values), lengths(values) == 0)]

    def _earliest(self, values: pa.Array, at: Times, groups: Numbers, count: int) -> list[pa.Array]:
        places = order(pa.table({"value": values}), groups, at)
        places = places[ranks_within(groups[places]) < self.limit]
        taken = groups[places]
        return [
            listed(pa.array(at[places]), taken, count),
            listed(values.take(pa.array(places)), taken, count),
        ]


@dataclass(frozen=True)
class Distinct(Aggregate):
    """How many distinct values a column has, counted: equal as in ``groupBy``."""

    column: str

    def output(self, name: str, schema: pa.Schema) -> list[pa.Field]:
        """Return a BIGINT, never null."""
        check("distinct", self.column, schema, is_any)
        return [pa.field(name, pa.int64(), nullable=False)]

    def state(self, name: str, schema: pa.Schema) -> list[pa.Field]:
        """Return the distinct values; nested ones as their text."""
        kind = schema.field(self.column).type
        return [pa.field(f"{name}.values", pa.list_(pa.string() if pa.types.is_nested(kind) else kind))]

    def partial(self, rows: pa.Table, at: Times, groups: Numbers, count: int) -> list[pa.Array]:
        """Keep each value of each group once."""
        values, groups, _ = present(rows, self.column, groups)
        return [_once(text(values) if pa.types.is_nested(values.type) else values, groups, count)]

    def merge(self, partials: list[pa.Array], groups: Numbers, count: int) -> list[pa.Array]:
        """Keep each value of each group once."""
        return [_once(partials[0].flatten(), groups[lists_of(partials[0])], count)]

    def finish(self, partials: list[pa.Array]) -> list[pa.Array]:
        """Return how many there are."""
        return [pa.array(lengths(partials[0]))]


@dataclass(frozen=True)
class ExactQuantile(Aggregate):
    """The least value of a column that is not exceeded by a share ``q`` of its values."""

    column: str
    q: float | tuple[float, ...]

    def output(self, name: str, schema: pa.Schema) -> list[pa.Field]:
        """Return the type of the column, or an array of it for several quantiles."""
        kind = check("exact_quantile", self.column, schema, is_ordered)
        return [pa.field(name, pa.list_(kind) if isinstance(self.q, tuple) else kind)]

    def state(self, name: str, schema: pa.Schema) -> list[pa.Field]:
        """Return all values."""
        return [pa.field(f"{name}.values", pa.list_(schema.field(self.column).type))]

    def partial(self, rows: pa.Table, at: Times, groups: Numbers, count: int) -> list[pa.Array]:
        """Put the values of each group in order."""
        values, groups, _ = present(rows, self.column, groups)
        return [_in_order(values, groups, count)]

    def merge(self, partials: list[pa.Array], groups: Numbers, count: int) -> list[pa.Array]:
        """Put the values of each group in order."""
        return [_in_order(partials[0].flatten(), groups[lists_of(partials[0])], count)]

    def finish(self, partials: list[pa.Array]) -> list[pa.Array]:
        """Return the values at the ranks that are asked for."""
        length = lengths(partials[0])
        starts, values = np.cumsum(length) - length, partials[0].flatten()
        quantiles = self.q if isinstance(self.q, tuple) else (self.q,)
        places = np.stack([starts + rank(q, length) for q in quantiles], axis=1)
        places[length == 0] = -1
        if not isinstance(self.q, tuple):
            return [chosen(values, places[:, 0])]
        return [arrays(chosen(values, places.ravel()), len(quantiles), length == 0)]


def arrays(values: pa.Array, length: int, missing: Mask) -> pa.ListArray:
    """Return arrays of as many values each; null where nothing is there."""
    return listed(values, np.repeat(np.arange(len(missing)), length), len(missing), missing)


def rank(q: float, lengths: Numbers) -> Numbers:
    """Return the place of a quantile among so many values: their share, rounded up, is up to there."""
    share = _share(q)
    up_to = -(-share.numerator * lengths // share.denominator)
    return np.asarray(np.maximum(up_to, 1) - 1)


@cache
def _share(q: float) -> Fraction:
    return Fraction(q).limit_denominator(_FINEST)


def _in_order(values: pa.Array, groups: Numbers, count: int) -> pa.ListArray:
    places = order(pa.table({"value": values}), groups)
    return listed(values.take(pa.array(places)), groups[places], count)


def _once(values: pa.Array, groups: Numbers, count: int) -> pa.ListArray:
    """Return the distinct values of each group, in the order of their first appearance."""
    numbers = alike(pa.table({"value": values}))
    kept = firsts(pairs(number(pa.array(groups)), numbers))
    kept = kept[stable(groups[kept])]
    return listed(values.take(pa.array(kept)), groups[kept], count)


def _is_listed(kind: pa.DataType) -> bool:
    """Take every type but free JSON, of which there are no arrays."""
    return True
