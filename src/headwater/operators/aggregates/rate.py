"""How much there is in a stretch of time: a count, or a sum, by the length of its window.

An aggregate is made before its window is known. So each window tells its aggregates how long it is, and
a rate that was told nothing, or that lengths differ, is refused.

Invariant: what is told is the exact sum by the exact length, rounded once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from fractions import Fraction

import pyarrow as pa

from headwater.durations import MICROSECOND
from headwater.errors import UsageError
from headwater.operators.aggregates.aggregate import Aggregate, check, is_number
from headwater.operators.aggregates.amounts import amount_of
from headwater.operators.aggregates.totals import Count, Sum
from headwater.operators.event_time import Times
from headwater.operators.groups import Numbers


@dataclass(frozen=True)
class Rate(Aggregate):
    """How many rows, or how much of a column, there are in each ``per`` of a window."""

    column: str | None
    per: timedelta
    length: timedelta | None = None
    """How long the window is; None while nobody has told."""

    def within(self, length: timedelta | None) -> Aggregate:
        """Return the rate in windows of a length."""
        if length is None:
            raise _homeless()
        return replace(self, length=length)

    def output(self, name: str, schema: pa.Schema) -> list[pa.Field]:
        """Return DOUBLE; null only where a column has nothing but nulls."""
        if self.length is None:
            raise _homeless()
        if self.column is not None:
            check("rate", self.column, schema, is_number)
        return [pa.field(name, pa.float64(), nullable=self.column is not None)]

    def state(self, name: str, schema: pa.Schema) -> list[pa.Field]:
        """Return what the count, or the sum, keeps."""
        return self._total.state(name, schema)

    def partial(self, rows: pa.Table, at: Times, groups: Numbers, count: int) -> list[pa.Array]:
        """Count rows, or add values."""
        return self._total.partial(rows, at, groups, count)

    def merge(self, partials: list[pa.Array], groups: Numbers, count: int) -> list[pa.Array]:
        """Add counts, or sums."""
        return self._total.merge(partials, groups, count)

    def finish(self, partials: list[pa.Array]) -> list[pa.Array]:
        """Return counts, or sums, by the length of the window."""
        assert self.length is not None, "output refuses a rate without a length"
        share = Fraction(self.per // MICROSECOND, self.length // MICROSECOND)
        if self.column is not None:
            return [amount_of(partials[1:]).shares(partials[0].to_numpy(), partials[1:], share)]
        # Python divides integers of any size and rounds once; a group is finished once.
        rates = [count * share.numerator / share.denominator for count in partials[0].to_pylist()]
        return [pa.array(rates, pa.float64())]

    @property
    def _total(self) -> Aggregate:
        return Count() if self.column is None else Sum(self.column)


def _homeless() -> UsageError:
    return UsageError(
        "rate needs windows of one length",
        detail="it divides by the length of the window, and that of sessions differs",
        hint="use it in tumbling, hopping or sliding windows; of a session, divide agg.count() by its length",
    )
