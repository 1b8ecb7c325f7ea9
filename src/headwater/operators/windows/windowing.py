"""What all windows have in common: the key, the aggregates, the rows out, and which rows are late.

Partial results are tables: the columns of the key, then those of each aggregate. Keys that are equal
are written in one way (a zero has no sign), so it makes no difference which row they are taken from.

Invariant: a row is used for every window that it belongs to, or it is late and used for none.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TypeVar

import numpy as np
import pyarrow as pa

from headwater.durations import MICROSECOND
from headwater.errors import UsageError
from headwater.operators.aggregates.aggregate import Aggregate
from headwater.operators.aggregates.row_count import RowCount
from headwater.operators.columns import check_columns, check_time, one_array
from headwater.operators.event_time import FOREVER, NEVER, Times, times
from headwater.operators.groups import Flags, Numbers
from headwater.operators.late_rows import Split
from headwater.operators.memory.key_hash import HashedGroups, hashed_groups, hashes
from headwater.operators.operator import Operator
from headwater.operators.order import order
from headwater.record import DELETED
from headwater.schema import TIMESTAMP

START, END, REVISION, COMPLETE = "window_start", "window_end", "revision", "complete"
LATE_BY, LATE_START = "late_by", "late_window_start"
S = TypeVar("S")
LONGEST_AGO = 1 << 62
"""A hundred thousand years: beyond it, a window's edges may be no times."""


@dataclass(frozen=True)
class Windowing:
    """The settings of a window that say nothing of its shape."""

    what: str
    by: tuple[str, ...]
    event_time: str
    aggregates: tuple[tuple[str, Aggregate], ...]
    late: str = "drop"
    keep: timedelta = timedelta()
    """How long after its end a window is corrected; zero unless late rows correct."""

    @property
    def corrects(self) -> bool:
        """Whether late rows correct what was published."""
        return self.late == "correct"

    @property
    def counting(self) -> Windowing:
        """The same, with the number of rows after the aggregates: where that decides on early results."""
        return replace(self, aggregates=(*self.aggregates, ("_rows", RowCount())))

    @property
    def uncompared_columns(self) -> tuple[str, ...]:
        """The columns out that may differ where rows came in other steps: estimates among them."""
        rough = (name for name, each in self.aggregates if not each.exact)
        return (REVISION, *(f"{name}{end}" for name in rough for end in ("", "_low", "_high")))

    def correction_horizon(self, watermark: int) -> int:
        """Return the clock behind which nothing is corrected any more."""
        return watermark if watermark == NEVER else max(watermark - self.keep // MICROSECOND, NEVER)

    def output_schema(self, schema: pa.Schema, retracts: bool = False) -> pa.Schema:
        """Return the schema of the rows out, or refuse what cannot be."""
        if self.by:
            check_columns(self.what, self.by, schema)
        check_time(self.what, self.event_time, schema)
        self._check_late(schema)
        made = [field for name, each in self.aggregates for field in each.output(name, schema)]
        made = [field.with_nullable(True) for field in made] if retracts else made
        edges = [pa.field(START, TIMESTAMP), pa.field(END, TIMESTAMP)]
        status = [pa.field(REVISION, pa.int32()), pa.field(COMPLETE, pa.bool_())]
        fields = [*map(schema.field, self.by), *edges, *made, *status]
        fields += [pa.field(DELETED, pa.bool_())] if retracts else []
        self.check_names([field.name for field in fields])
        return pa.schema(fields)

    def check_names(self, names: list[str]) -> None:
        """Refuse rows out with two columns of one name."""
        for name in names:
            if names.count(name) > 1:
                raise UsageError(
                    f'{self.what} has two columns "{name}"',
                    detail=f"rows out have {', '.join(names)}",
                    hint="give the aggregate, or the column of the key, another name",
                )

    def late_schema(self, schema: pa.Schema) -> pa.Schema:
        """Return the schema of late rows: how far behind the clock each is, and the start of its window."""
        return schema.append(pa.field(LATE_BY, pa.int64())).append(pa.field(LATE_START, TIMESTAMP))

    def split_late(self, rows: pa.Table, at: Times, late: Flags, starts: Times, watermark: int) -> Split:
        """Set the rows apart that a window judges late, with what is said of each."""
        if not late.any():
            return Split(rows, at, None)
        away = self.late_rows(rows.filter(pa.array(late)), at[late], starts[late], watermark)
        return Split(rows.filter(pa.array(~late)), at[~late], away)

    def late_rows(self, rows: pa.Table, at: Times, starts: Times, watermark: int) -> pa.Table | None:
        """Return rows that are late, with what is said of each."""
        if not len(rows):
            return None
        unknown = at == NEVER
        behind = np.where(unknown, 0, watermark - np.where(unknown, 0, at)) if watermark != NEVER else at * 0
        columns = [
            pa.array(behind, mask=unknown | (watermark == NEVER)),
            pa.array(starts, mask=unknown).cast(TIMESTAMP),
        ]
        return pa.Table.from_arrays([*rows.columns, *columns], schema=self.late_schema(rows.schema))

    def state_schema(self, schema: pa.Schema) -> pa.Schema:
        """Return the schema of partial results."""
        partials = [field for name, each in self.aggregates for field in each.state(name, schema)]
        return pa.schema([*map(schema.field, self.by), *partials]).remove_metadata()

    def partials(self, rows: pa.Table, at: Times, of: Numbers, first: Numbers) -> pa.Table:
        """Return the partial result of each group of rows, given where it is first."""
        keys = [_plain(column) for column in rows.select(self.by).take(pa.array(first)).columns]
        found = [part for _, each in self.aggregates for part in each.partial(rows, at, of, len(first))]
        return pa.Table.from_arrays([*keys, *found], schema=self.state_schema(rows.schema))

    def merge(self, rows: pa.Table, groups: Numbers, count: int) -> pa.Table:
        """Return partial results merged by group; every group has one."""
        first = np.empty(count, np.int64)
        first[groups[::-1]] = np.arange(len(groups))[::-1]  # of several, the last is assigned: the first
        keys = self._keys(rows).take(pa.array(first)).columns
        found = [part for each, columns in self._apart(rows) for part in each.merge(columns, groups, count)]
        return pa.Table.from_arrays([*keys, *found], schema=rows.schema)

    def results(self, rows: pa.Table, start: Times, end: Times, status: list[pa.Array]) -> list[pa.Array]:
        """Return the columns out: partial results finished, the windows' edges, and what is told of them."""
        made = [part for each, columns in self._apart(rows) for part in each.finish(columns)]
        edges = [pa.array(start).cast(TIMESTAMP), pa.array(end).cast(TIMESTAMP)]
        return [*self._keys(rows).columns, *edges, *made, *status]

    def named_results(self, rows: pa.Table, names: list[str]) -> dict[str, pa.Array]:
        """Return, of partial results, the columns that bear the names of some aggregates."""
        named = zip((name for name, _ in self.aggregates), self._apart(rows), strict=True)
        return {name: each.finish(columns)[0] for name, (each, columns) in named if name in names}

    def arranged(self, out: pa.Table) -> pa.Table:
        """Return rows out in the order of their windows, and those of one window in that of their keys."""
        places = order(out.select(self.by), times(out, START), times(out, END))
        return out.take(pa.array(places))

    def _keys(self, rows: pa.Table) -> pa.Table:
        return rows.select(list(range(len(self.by))))

    def _apart(self, rows: pa.Table) -> Iterable[tuple[Aggregate, list[pa.Array]]]:
        columns = list(zip(rows.column_names, rows.columns, strict=True))[len(self.by) :]
        for name, each in self.aggregates:
            yield each, [one_array(column) for known, column in columns if known.startswith(f"{name}.")]

    def _check_late(self, schema: pa.Schema) -> None:
        for name in (LATE_BY, LATE_START):
            if name in schema.names:
                raise UsageError(
                    f'{self.what} cannot take rows with a column "{name}"',
                    detail="late rows get a column of that name",
                    hint="give it another name before",
                )


class Windowed(Operator[S]):
    """An operator whose results are windows: what all of them say of these."""

    version = 3
    windowing: Windowing
    every: timedelta | int | None
    """When windows that are not finished are published too; a number is one of rows."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", self.windowing.by)

    @property
    def waits(self) -> bool:
        """A window is complete when the clock has passed its end."""
        return True

    @property
    def identity(self) -> tuple[str, ...]:
        """The key, and the start of the window."""
        return (*self.windowing.by, START)

    @property
    def uncompared_columns(self) -> tuple[str, ...]:
        """How often it was published before, and what is only estimated."""
        return self.windowing.uncompared_columns

    @property
    def repeatable(self) -> bool:
        """Whether arrival has no say: how many rows have come decides on early results, if it is asked."""
        return not isinstance(self.every, int)

    def late_schema(self, schema: pa.Schema) -> pa.Schema:
        """Return the columns of the rows, and what is told of late ones."""
        return self.windowing.late_schema(schema)


def grouped(rows: pa.Table, by: tuple[str, ...]) -> HashedGroups:
    """Group rows by key; if that has no columns, in one group."""
    if by:
        return hashed_groups(rows, by)
    first = np.zeros(min(len(rows), 1), np.int64)
    return HashedGroups(np.zeros(len(rows), np.int64), first, hashes([], len(first)))


def timed(at: Times) -> Flags:
    """Tell which times are any, and not so far away that a window around them cannot be written."""
    return (at > -LONGEST_AGO) & (at < LONGEST_AGO)


def bounded(time: int) -> int:
    """Return a time as one that a column can hold."""
    return min(max(time, NEVER), FOREVER)


def _plain(column: pa.ChunkedArray) -> pa.Array:
    """Return a column of keys, where NaN and zero have one form each."""
    if not pa.types.is_floating(column.type):
        return column
    whole = one_array(column)
    floats = whole.fill_null(0).to_numpy(zero_copy_only=False) + whole.type.to_pandas_dtype()(0)
    floats[np.isnan(floats)] = np.nan
    return pa.array(floats, whole.type, mask=whole.is_null().to_numpy(zero_copy_only=False))
