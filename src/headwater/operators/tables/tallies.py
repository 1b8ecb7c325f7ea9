"""What is known of a column's values in each group, as rows enter groups and leave them.

Invariant: a group that all rows have left is as if it had never been.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from decimal import Context, Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from headwater.operators.groups import Flags, Numbers
from headwater.operators.memory.slots import sized
from headwater.operators.memory.sorted_multiset import SortedMultiset, comparable, restored
from headwater.operators.tables.exact import SCALE, Sums, finite

_WIDE = Context(prec=80)


class ValueCounts:
    """How many values that are not null each group has."""

    def __init__(self, kind: pa.DataType):
        self._counts = np.empty(0, np.int64)

    def change(self, groups: Numbers, column: pa.Array, sign: int) -> None:
        """Take the values of rows that enter groups (1) or leave them (-1)."""
        self.tell(groups[column.is_valid().to_numpy(zero_copy_only=False)], sign)

    def tell(self, groups: Numbers, sign: int) -> None:
        """Count groups."""
        self._counts = sized(self._counts, int(groups.max(initial=-1)) + 1, 0)
        np.add.at(self._counts, groups, sign)

    def of(self, groups: Numbers) -> Numbers:
        """Return the counts of some groups."""
        self._counts = sized(self._counts, int(groups.max(initial=-1)) + 1, 0)
        return self._counts[groups]


class Totals:
    """The exact sum of each group's values, and how many there are, those beside the numbers apart."""

    def __init__(self, kind: pa.DataType):
        self.kind = kind
        self._sums = Sums()
        self._count, self._nan, self._up, self._down = (ValueCounts(kind) for _ in range(4))
        floating, decimal = pa.types.is_floating(kind), pa.types.is_decimal(kind)
        self._unit = 1 << SCALE if floating else 10**kind.scale if decimal else 1

    def change(self, groups: Numbers, column: pa.Array, sign: int) -> None:
        """Take the values of rows that enter groups (1) or leave them (-1)."""
        self._count.change(groups, column, sign)
        numbers = finite(column).fill_null(False).to_numpy(zero_copy_only=False)
        self._sums.change(groups[numbers], column.filter(pa.array(numbers)), sign)
        if pa.types.is_floating(self.kind) and not numbers.all():
            self._beside(groups, column.fill_null(0.0).to_numpy(zero_copy_only=False), sign)

    def sums(self, groups: Numbers, kind: pa.DataType) -> pa.Array:
        """Return the sums of some groups as a type: null without values, or where they do not fit."""
        if pa.types.is_decimal(kind):
            return self._read(groups, kind, lambda total, _: _decimal(total, kind))
        if pa.types.is_integer(kind):
            return self._read(groups, kind, lambda total, _: total if -(1 << 63) <= total < 1 << 63 else None)
        return self._read(groups, kind, lambda total, _: _ratio(total, self._unit))

    def means(self, groups: Numbers) -> pa.Array:
        """Return the means of some groups: null without values."""
        return self._read(groups, pa.float64(), lambda total, n: _ratio(total, n * self._unit))

    def _beside(self, groups: Numbers, floats: Any, sign: int) -> None:
        kinds: list[tuple[ValueCounts, Flags]] = [
            (self._nan, np.isnan(floats)),
            (self._up, floats == np.inf),
            (self._down, floats == -np.inf),
        ]
        for counts, some in kinds:
            counts.tell(groups[some], sign)

    def _read(self, groups: Numbers, kind: pa.DataType, read: Callable[[int, int], Any]) -> pa.Array:
        # One call for each group that is touched: exact integers are Python's.
        counts = self._count.of(groups).tolist()
        totals = zip(self._sums.of(groups), counts, strict=True)
        found = [read(total, count) if count else None for total, count in totals]
        return pa.array(self._without_limit(groups, found), kind)

    def _without_limit(self, groups: Numbers, values: list[Any]) -> list[Any]:
        nan, up, down = (counts.of(groups) > 0 for counts in (self._nan, self._up, self._down))
        for some, value in ((up, np.inf), (down, -np.inf), (nan | (up & down), np.nan)):
            for index in np.flatnonzero(some).tolist():
                values[index] = value
        return values


class Ranks:
    """The values of each group in their order."""

    def __init__(self, kind: pa.DataType):
        self.kind = kind
        self._ranked: dict[int, SortedMultiset] = {}

    def change(self, groups: Numbers, column: pa.Array, sign: int) -> None:
        """Take the values of rows that enter groups (1) or leave them (-1)."""
        there = column.is_valid().to_numpy(zero_copy_only=False)
        found: dict[int, list[Any]] = defaultdict(list)
        # A value's place in the order of its group's is found by comparing, one by one.
        for group, value in zip(groups[there].tolist(), comparable(column.drop_null()), strict=True):
            found[group].append(value)
        for group, some in found.items():
            (self._add if sign > 0 else self._remove)(group, some)

    def least(self, groups: Numbers) -> pa.Array:
        """Return the least value of some groups."""
        return self._read(groups, SortedMultiset.least)

    def most(self, groups: Numbers) -> pa.Array:
        """Return the greatest value of some groups."""
        return self._read(groups, lambda ranked: ranked.greatest(1)[0])

    def greatest(self, groups: Numbers, count: int) -> pa.Array:
        """Return the greatest values of some groups, the greatest first."""
        empty = SortedMultiset()
        found = [self._ranked.get(group, empty).greatest(count) for group in groups.tolist()]
        ends = np.cumsum([0, *map(len, found)]).astype(np.int32)
        flat = restored([value for some in found for value in some], self.kind)
        return pa.ListArray.from_arrays(pa.array(ends), flat)

    def _read(self, groups: Numbers, read: Callable[[SortedMultiset], Any]) -> pa.Array:
        ranked = map(self._ranked.get, groups.tolist())
        return restored([None if each is None else read(each) for each in ranked], self.kind)

    def _add(self, group: int, values: list[Any]) -> None:
        self._ranked.setdefault(group, SortedMultiset()).add(values)

    def _remove(self, group: int, values: list[Any]) -> None:
        ranked = self._ranked[group]
        for value in values:
            ranked.remove(value)
        if not len(ranked):
            del self._ranked[group]


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
