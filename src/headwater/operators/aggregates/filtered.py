"""An aggregate of the rows that satisfy a condition: ``agg.count(where="price < 10000")``.

The others count as rows whose column is null, and nulls are passed over. So partial results are those of the
aggregate itself. Invariant: it tells what the aggregate tells of the rows for which the condition is true.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater import expressions
from headwater.errors import UsageError
from headwater.expressions import Expression
from headwater.operators.aggregates.aggregate import Aggregate
from headwater.operators.columns import one_array
from headwater.operators.event_time import Times
from headwater.operators.groups import Flags, Numbers

_parsed = lru_cache(expressions.parse)


def filtered(aggregate: Aggregate, where: str | None) -> Aggregate:
    """Return an aggregate of the rows that satisfy a condition, if there is one."""
    if where is None:
        return aggregate
    _parsed(where)  # what cannot be read is refused at once
    return Filtered(aggregate, where)


def satisfied(where: str, rows: pa.Table) -> Flags:
    """Return for which rows a condition is true; one that is null is not."""
    condition = _parsed(where)
    batch = pa.RecordBatch.from_arrays(
        [one_array(rows.column(name)) for name in condition.columns], list(condition.columns)
    )
    found = condition.over(batch) if condition.columns else _constant(condition, len(rows))
    flags: Flags = pc.fill_null(found, False).to_numpy(zero_copy_only=False)
    return flags


def masked(column: pa.ChunkedArray, flags: Flags) -> pa.Array:
    """Return a column that is null where a condition is not satisfied."""
    return one_array(column).take(pa.array(np.arange(len(flags)), mask=~flags))


def check_condition(where: str, schema: pa.Schema) -> None:
    """Refuse what is no condition over columns."""
    kind = _parsed(where).type(schema)
    if not pa.types.is_boolean(kind):
        raise UsageError(
            f'where="{where}" is no condition',
            detail=f"it is {kind}, neither true nor false",
            hint='compare something, as in where="price < 10000"',
        )


@dataclass(frozen=True)
class Filtered(Aggregate):
    """An aggregate of the rows that satisfy a condition."""

    aggregate: Aggregate
    where: str

    @property
    def exact(self) -> bool:  # type: ignore[override]  # of others it is known without an instance
        """Whether the aggregate itself is."""
        return self.aggregate.exact

    def within(self, length: timedelta | None) -> Aggregate:
        """Return the aggregate in windows of a length."""
        return replace(self, aggregate=self.aggregate.within(length))

    def output(self, name: str, schema: pa.Schema) -> list[pa.Field]:
        """Return the columns of the aggregate, after a look at the condition."""
        check_condition(self.where, schema)
        return self.aggregate.output(name, schema)

    def state(self, name: str, schema: pa.Schema) -> list[pa.Field]:
        """Return what the aggregate stores."""
        return self.aggregate.state(name, schema)

    def partial(self, rows: pa.Table, at: Times, groups: Numbers, count: int) -> list[pa.Array]:
        """Return what the rows of each group come to that satisfy the condition."""
        flags = satisfied(self.where, rows)
        column = self.column
        if column is None:  # rows are counted, and of a group without any there are none
            return self.aggregate.partial(rows.filter(pa.array(flags)), at[flags], groups[flags], count)
        place = rows.schema.get_field_index(column)
        rows = rows.set_column(place, rows.schema.field(place), masked(rows.column(place), flags))
        return self.aggregate.partial(rows, at, groups, count)

    def merge(self, partials: list[pa.Array], groups: Numbers, count: int) -> list[pa.Array]:
        """Return what the aggregate makes of partial results."""
        return self.aggregate.merge(partials, groups, count)

    def finish(self, partials: list[pa.Array]) -> list[pa.Array]:
        """Return what the aggregate tells."""
        return self.aggregate.finish(partials)

    @property
    def column(self) -> str | None:
        """The column that is aggregated; None where rows are counted."""
        found: Any = getattr(self.aggregate, "column")  # noqa: B009  # each of them has one
        return None if found is None else str(found)


def _constant(condition: Expression, rows: int) -> pa.Array:
    """Return a condition over no columns, for so many rows."""
    one = condition.over(pa.RecordBatch.from_pydict({"_": pa.nulls(1)}))
    return pa.repeat(one[0], rows)
