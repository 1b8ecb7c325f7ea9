"""One value out of many: the least, the greatest, the earliest, the latest.

Invariant: values are compared in one total order, in which -0.0 is before 0.0 and NaN after all
other numbers; so the value that is chosen does not depend on who came first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.operators.aggregates.aggregate import (
    Aggregate,
    check,
    is_any,
    is_integer,
    is_moment,
    is_ordered,
)
from headwater.operators.aggregates.by_group import chosen, placed, present, reduced
from headwater.operators.event_time import FOREVER, NEVER, Times
from headwater.operators.groups import Numbers
from headwater.operators.order import order, ranks


@dataclass(frozen=True)
class Min(Aggregate):
    """The least value of a column."""

    column: str
    greatest: ClassVar[bool] = False

    def output(self, name: str, schema: pa.Schema) -> list[pa.Field]:
        """Return the type of the column."""
        return [pa.field(name, check(type(self).__name__.lower(), self.column, schema, is_ordered))]

    def state(self, name: str, schema: pa.Schema) -> list[pa.Field]:
        """Return the value."""
        return [pa.field(f"{name}.value", schema.field(self.column).type)]

    def partial(self, rows: pa.Table, at: Times, groups: Numbers, count: int) -> list[pa.Array]:
        """Choose among the values of each group."""
        values, groups, _ = present(rows, self.column, groups)
        return [_extremes(values, groups, count, self.greatest)]

    def merge(self, partials: list[pa.Array], groups: Numbers, count: int) -> list[pa.Array]:
        """Choose among those that were chosen."""
        values, groups, _ = present(pa.table({"value": partials[0]}), "value", groups)
        return [_extremes(values, groups, count, self.greatest)]

    def finish(self, partials: list[pa.Array]) -> list[pa.Array]:
        """Return the values."""
        return partials


@dataclass(frozen=True)
class Max(Min):
    """The greatest value of a column."""

    greatest: ClassVar[bool] = True


@dataclass(frozen=True)
class Any(Max):
    """A value of a column of whatever type, always the same one: the greatest."""

    def output(self, name: str, schema: pa.Schema) -> list[pa.Field]:
        """Return the type of the column."""
        check("any", self.column, schema, is_any)
        return [_named(name, schema.field(self.column))]


@dataclass(frozen=True)
class First(Aggregate):
    """The value of the earliest row in which a column is not null; of equal times, the least."""

    column: str
    newest: ClassVar[bool] = False

    def output(self, name: str, schema: pa.Schema) -> list[pa.Field]:
        """Return the type of the column."""
        check(type(self).__name__.lower(), self.column, schema, is_any)
        return [_named(name, schema.field(self.column))]

    def state(self, name: str, schema: pa.Schema) -> list[pa.Field]:
        """Return the value and its time."""
        kind = schema.field(self.column).type
        return [pa.field(f"{name}.at", pa.int64()), pa.field(f"{name}.value", kind)]

    def partial(self, rows: pa.Table, at: Times, groups: Numbers, count: int) -> list[pa.Array]:
        """Choose among the values of each group."""
        values, groups, places = present(rows, self.column, groups)
        return self._chosen(values, at if places is None else at[places], groups, count)

    def merge(self, partials: list[pa.Array], groups: Numbers, count: int) -> list[pa.Array]:
        """Choose among those that were chosen."""
        values, groups, places = present(pa.table({"value": partials[1]}), "value", groups)
        at = partials[0].fill_null(NEVER).to_numpy()
        return self._chosen(values, at if places is None else at[places], groups, count)

    def finish(self, partials: list[pa.Array]) -> list[pa.Array]:
        """Return the values."""
        return partials[1:]

    def _chosen(self, values: pa.Array, at: Times, groups: Numbers, count: int) -> list[pa.Array]:
        ends = _ends(at, groups, count, self.newest)
        places = np.flatnonzero(at == ends[groups])
        # Those of one time are few, mostly: only they are put in order.
        found = _last(values.take(pa.array(places)), groups[places], count, self.newest)
        found = np.append(places, -1)[found]
        return [chosen(pa.array(at), found), chosen(values, found)]


@dataclass(frozen=True)
class Last(First):
    """The value of the latest row in which a column is not null; of equal times, the greatest."""

    newest: ClassVar[bool] = True


def _named(name: str, field: pa.Field) -> pa.Field:
    """Return a column of the same type under another name; free JSON stays what it is."""
    return field.with_name(name).with_nullable(True)


def _ends(at: Times, groups: Numbers, count: int, newest: bool) -> Times:
    """Return the first or last time of each group."""
    ends = np.full(count, NEVER if newest else FOREVER)
    (np.maximum if newest else np.minimum).at(ends, groups, at)
    return ends


def _last(values: pa.Array, groups: Numbers, count: int, greatest: bool) -> Numbers:
    """Return the place of the greatest or least value of each group, or -1."""
    places = order(pa.table({"value": values}), groups)
    places = places if greatest else places[::-1]
    return np.append(places, -1)[placed(groups[places], count)]


def _extremes(values: pa.Array, groups: Numbers, count: int, greatest: bool) -> pa.Array:
    """Return the greatest or least value of each group."""
    kind = values.type
    if is_integer(kind) or is_moment(kind) or pa.types.is_floating(kind):
        return _numeric(values, groups, count, greatest)
    if is_ordered(kind):
        return reduced(values, groups, count, "max" if greatest else "min")
    return chosen(values, _last(values, groups, count, greatest))


def _numeric(values: pa.Array, groups: Numbers, count: int, greatest: bool) -> pa.Array:
    """Compare values as 64-bit integers in the same order."""
    extremes = np.full(count, NEVER if greatest else FOREVER)
    (np.maximum if greatest else np.minimum).at(extremes, groups, _as_numbers(values))
    missing = np.bincount(groups, minlength=count) == 0
    return _from_numbers(extremes, missing, values.type)


def _as_numbers(values: pa.Array) -> Numbers:
    if pa.types.is_floating(values.type):
        return np.asarray(ranks(values))
    narrow = is_moment(values.type) and values.type.bit_width == 32
    told: Numbers = (values.cast(pa.int32()) if narrow else values).cast(pa.int64()).to_numpy()
    return told


def _from_numbers(numbers: Numbers, missing: npt.NDArray[np.bool_], kind: pa.DataType) -> pa.Array:
    if pa.types.is_floating(kind):
        bits = np.where(numbers < 0, numbers ^ np.int64(2**63 - 1), numbers)
        return pa.array(bits.view(np.float64), mask=missing).cast(kind)
    told = pa.array(numbers, mask=missing)
    return (told.cast(pa.int32()) if kind.bit_width == 32 else told).cast(kind)
