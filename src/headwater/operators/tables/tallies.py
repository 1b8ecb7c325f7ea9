"""What is known of a column's values in each group, as rows enter groups and leave them.

A tally is a few columns of the rows that groups have, and says how they change. What they were is given to
it, so it is looked up once for all tallies, and is at hand to be compared with.

Invariant: a group that all rows have left is as if it had never been.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from headwater.operators.aggregates.by_group import added, valid
from headwater.operators.groups import Numbers
from headwater.operators.memory.sorted_runs import SortedRuns
from headwater.operators.tables.exact import LimbSums, exact_sums, finite

_WIDE = Context(prec=80)
_EXACT = 1 << 53
"""Integers below it are floats: one divided by another is rounded once."""


class Ends(NamedTuple):
    """How many of the least values are asked for, and how many of the greatest."""

    least: int = 0
    most: int = 0

    def __or__(self, other: Ends) -> Ends:
        """Return what both ask for."""
        return Ends(max(self.least, other.least), max(self.most, other.most))


@dataclass(frozen=True)
class ValueChanges:
    """Values that enter groups (1) and leave them (-1), the group of each, and the ids of groups."""

    ids: Numbers
    of: Numbers
    signs: Numbers
    values: pa.Array

    def take(self, indices: Numbers) -> ValueChanges:
        """Return some of the values."""
        values = self.values.take(pa.array(indices))
        return ValueChanges(self.ids, self.of[indices], self.signs[indices], values)

    def present(self) -> ValueChanges:
        """Leave out the nulls."""
        return self.take(np.flatnonzero(valid(self.values))) if self.values.null_count else self


class Tally(Protocol):
    """What is known of some values of many groups."""

    fields: list[pa.Field]

    def changed(self, columns: Sequence[pa.Array], changes: ValueChanges) -> list[pa.Array]:
        """Return the columns of groups after changes, given those from before, with zeros for new groups."""

    def containers(self) -> dict[str, SortedRuns]:
        """Return what is held beside the rows of groups."""

    def counters(self) -> dict[str, tuple[object, str]]:
        """Return the numbers that are to be stored, as ``OperatorMemory`` takes them."""


class ValueCounts:
    """How many values that are not null each group has."""

    def __init__(self, kind: pa.DataType, ends: Ends):
        self.fields = [pa.field("count", pa.int64())]

    def changed(self, columns: Sequence[pa.Array], changes: ValueChanges) -> list[pa.Array]:
        """Count values."""
        changes = changes.present()
        return [_counted(columns[0], changes.of, changes.signs)]

    def containers(self) -> dict[str, SortedRuns]:
        """Return none."""
        return {}

    def counters(self) -> dict[str, tuple[object, str]]:
        """Return none."""
        return {}


class Totals(ValueCounts):
    """The exact sum of each group's values, and how many there are, those beside the numbers apart."""

    def __init__(self, kind: pa.DataType, ends: Ends):
        self.kind = kind
        self._sums = exact_sums(kind)
        self._beside = ["nan", "up", "down"] if pa.types.is_floating(kind) else []
        names = ["count", *self._beside]
        self.fields = [*(pa.field(name, pa.int64()) for name in names), *self._sums.fields]
        self._unit = 10**kind.scale if pa.types.is_decimal(kind) else 1

    def changed(self, columns: Sequence[pa.Array], changes: ValueChanges) -> list[pa.Array]:
        """Add values, and take out others."""
        changes, beside, sums = changes.present(), list(columns[1 : self._first]), columns[self._first :]
        counts = _counted(columns[0], changes.of, changes.signs)
        numbers = finite(changes.values).to_numpy(zero_copy_only=False)
        if not numbers.all():
            beside = self._counted_beside(beside, changes.take(np.flatnonzero(~numbers)))
            changes = changes.take(np.flatnonzero(numbers))
        return [counts, *beside, *self._sums.changed(sums, changes.of, changes.values, changes.signs)]

    def sums(self, columns: Sequence[pa.Array], kind: pa.DataType) -> pa.Array:
        """Return the sums of groups as a type: null without values, or where they do not fit."""
        if pa.types.is_integer(kind):
            assert isinstance(self._sums, LimbSums)
            totals, wide = self._sums.integers(columns[self._first :])
            return pa.array(totals, kind, mask=wide | (columns[0].to_numpy() == 0))
        if pa.types.is_decimal(kind):
            return self._read(columns, kind, lambda total, _, __: _decimal(total, kind))
        return self._read(columns, kind, lambda total, below, _: _ratio(total, below))

    def means(self, columns: Sequence[pa.Array]) -> pa.Array:
        """Return the means of groups: null without values."""
        if isinstance(self._sums, LimbSums) and self._unit == 1 and pa.types.is_integer(self.kind):
            totals, wide = self._sums.integers(columns[self._first :])
            if not (wide | (np.abs(totals) >= _EXACT)).any():
                counts = columns[0].to_numpy()
                return pa.array(totals / np.maximum(counts, 1) + 0.0, mask=counts == 0)
        unit = self._unit
        return self._read(columns, pa.float64(), lambda total, below, n: _ratio(total, below * n * unit))

    @property
    def _first(self) -> int:
        """The place of the first column of the sums."""
        return 1 + len(self._beside)

    def _counted_beside(self, columns: Sequence[pa.Array], changes: ValueChanges) -> list[pa.Array]:
        floats = changes.values.to_numpy(zero_copy_only=False)
        kinds = (np.isnan(floats), floats == np.inf, floats == -np.inf)
        pairs = zip(columns, kinds, strict=True)
        return [_counted(column, changes.of[some], changes.signs[some]) for column, some in pairs]

    def _read(
        self, columns: Sequence[pa.Array], kind: pa.DataType, read: Callable[[int, int, int], Any]
    ) -> pa.Array:
        # One call for each group that is touched: exact integers are Python's.
        totals = zip(self._sums.fractions(columns[self._first :]), columns[0].to_pylist(), strict=True)
        found = [read(*total, count) if count else None for total, count in totals]
        if self._beside:
            _put_limits(found, *(column.to_numpy() > 0 for column in columns[1 : self._first]))
        return pa.array(found, kind)


def _counted(column: pa.Array, of: Numbers, signs: Numbers) -> pa.Array:
    return pa.array(column.to_numpy() + added(signs, of, len(column)))


def _put_limits(values: list[Any], nan: Any, up: Any, down: Any) -> None:
    for some, value in ((up, np.inf), (down, -np.inf), (nan | (up & down), np.nan)):
        for index in np.flatnonzero(some).tolist():
            values[index] = value


def _decimal(total: int, kind: pa.DataType) -> Decimal | None:
    if abs(total) >= 10**kind.precision:
        return None
    return Decimal(total).scaleb(-kind.scale, _WIDE)


def _ratio(above: int, below: int) -> float:
    """Return a fraction as the nearest float; what is too small for one is zero, which has no sign here."""
    try:
        return above / below + 0.0
    except OverflowError:
        return float("inf") if above > 0 else float("-inf")
