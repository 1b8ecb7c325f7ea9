"""Which changes and records a client wants: those of a key, of values of columns, of a partition.

Invariant: a change that moves a row into what a client follows is told as an insert, and one that moves it
out as a delete; so a client's rows are those that a scan with the same filter finds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from headwater.api.view_keys import value
from headwater.errors import UsageError, nearest


@dataclass(frozen=True)
class PushFilter:
    """Values that columns must have; everything, if there are none."""

    key: tuple[Any, ...] = ()
    """Values of the leading columns of the key."""
    conditions: tuple[tuple[str, Any], ...] = ()
    """Columns with the values they must have, those of the key among them."""
    partition: int | None = None

    @property
    def everything(self) -> bool:
        """Whether nothing is left out."""
        return not self.conditions and self.partition is None

    def takes(self, row: Mapping[str, Any] | None) -> bool:
        """Tell whether a row, which may not be there, has the values."""
        return row is not None and all(row.get(name) == wanted for name, wanted in self.conditions)

    def select(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows that have the values."""
        for name, wanted in self.conditions:
            column = rows.column(name)
            rows = rows.filter(pc.equal(column, pa.scalar(wanted, column.type)))
        return rows


@dataclass(frozen=True)
class FilterTexts:
    """A filter as a request has it: texts."""

    key: Sequence[str] = ()
    where: Sequence[str] = ()
    partition: int | None = None

    def read(self, what: str, schema: pa.Schema, key: Sequence[str]) -> PushFilter:
        """Return the filter, with values of the types that the columns have."""
        if len(self.key) > len(key):
            named = f"({', '.join(key)})" if key else "none"
            raise UsageError(f"key of {what} is {named}", detail=f"got {len(self.key)} values")
        names = [*key[: len(self.key)], *(each.partition(":")[0] for each in self.where)]
        texts = [*self.key, *(each.partition(":")[2] for each in self.where)]
        if any(":" not in each for each in self.where):
            raise UsageError("where= is a column and a value", hint="write it as where=city:Oslo")
        pairs = [
            (name, _checked(text, _field(what, schema, name)))
            for name, text in zip(names, texts, strict=True)
        ]
        leading = tuple(wanted for _, wanted in pairs[: len(self.key)])
        return PushFilter(leading, tuple(pairs), self.partition)


def _field(what: str, schema: pa.Schema, name: str) -> pa.Field:
    if name not in schema.names:
        hint = nearest(name, schema.names) or "its columns: " + ", ".join(schema.names)
        raise UsageError(f'{what} has no column "{name}"', hint=hint)
    field = schema.field(name)
    if pa.types.is_nested(field.type):
        raise UsageError(f'{what} cannot be filtered by "{name}"', detail="it is nested")
    return field


def _checked(text: str, field: pa.Field) -> Any:
    wanted = value(text, field)
    if isinstance(wanted, float) and math.isnan(wanted):
        raise UsageError(f'column "{field.name}" cannot be filtered by NaN', detail="it equals nothing")
    return wanted
