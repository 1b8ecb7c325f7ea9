"""What a scan of a view asks for.

Invariant: a query that passes its check names only columns the view has, and compares each with a
value of its type.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import pyarrow as pa

from headwater.errors import UsageError, nearest
from headwater.schema import type_name
from headwater.values.keyed import KeyedSchema
from headwater.values.one_value import fitted

_t = pa.types
Condition = tuple[pa.Field, str, Any]
"""A column, a sign, and the value it is compared with."""


class RowComparison(NamedTuple):
    """Columns that are compared, as one, with as many values; or one of them with null."""

    fields: tuple[pa.Field, ...]
    sign: Literal["<", ">", "IS NULL", "IS NOT NULL"]
    values: tuple[Any, ...] = ()


@dataclass(frozen=True)
class ViewQuery:
    """A part of a view, in an order."""

    prefix: tuple[Any, ...] = ()
    """Values of the leading columns of the key."""
    start: Any = None
    """Where the next column of the key begins, included."""
    end: Any = None
    """Where it ends, left out."""
    order: str | None = None
    descending: bool = False
    limit: int | None = None
    after: tuple[Any, ...] | None = None
    """What the columns of the order have in the row after which to begin."""

    def check(self, keyed: KeyedSchema) -> None:
        """Refuse what cannot be asked of a view."""
        for field, _, value in self.conditions(keyed):
            fitted(value, field, keyed.what)
        names = self.order_columns(keyed)
        if self.after is not None and len(self.after) != len(names):
            raise UsageError(f"a row of {keyed.what} has {len(names)} columns to go on after")
        for comparison in (each for alternative in self.following(keyed) for each in alternative):
            for field, value in zip(comparison.fields, comparison.values, strict=False):
                fitted(value, field, keyed.what)
        if self.limit is not None and not (type(self.limit) is int and self.limit >= 0):
            raise UsageError(f"limit is a number of rows, not {self.limit!r:.60}")

    def conditions(self, keyed: KeyedSchema) -> list[Condition]:
        """Return which columns are compared, how, and with what."""
        if len(self.prefix) > len(keyed.key):
            raise UsageError(
                f"key of {keyed.what} is ({', '.join(keyed.key)})", detail=f"got {self.prefix!r:.80}"
            )
        fields = keyed.key_fields
        conditions: list[Condition] = [(f, "=", value) for f, value in zip(fields, self.prefix, strict=False)]
        for sign, value in ((">=", self.start), ("<", self.end)):
            if value is not None:
                conditions.append((self._range_column(fields, keyed), sign, value))
        return conditions

    def following(self, keyed: KeyedSchema) -> list[list[RowComparison]]:
        """Return what holds of the rows after ``after``: one of the alternatives, in all of its parts.

        A null comes before everything, and after it where the order is descending; no key has one.
        """
        if self.after is None:
            return []
        fields = tuple(keyed.schema.field(name) for name in self.order_columns(keyed))
        sign: Literal["<", ">"] = "<" if self.descending else ">"
        beyond = RowComparison(fields, sign, self.after)
        if self.order is None or self.order in keyed.key:
            return [[beyond]]
        null, present = RowComparison(fields[:1], "IS NULL"), RowComparison(fields[:1], "IS NOT NULL")
        if self.after[0] is not None:
            return [[beyond], [null]] if self.descending else [[beyond]]
        also_null = [null, RowComparison(fields[1:], sign, self.after[1:])]
        return [also_null] if self.descending else [also_null, [present]]

    def _range_column(self, fields: list[pa.Field], keyed: KeyedSchema) -> pa.Field:
        if len(self.prefix) == len(fields):
            raise UsageError(
                f"a scan of {keyed.what} by its whole key has no range",
                hint="start and end are values of the key column after those of the prefix",
            )
        return fields[len(self.prefix)]

    def order_columns(self, keyed: KeyedSchema) -> list[str]:
        """Return the columns to order by; the key settles it among equals, so it is the same every time."""
        names = list(keyed.key) if self.order is None else [self.order, *keyed.key]
        if names[0] not in keyed.schema.names:
            columns = keyed.schema.names
            hint = nearest(names[0], columns) or "its columns: " + ", ".join(columns)
            raise UsageError(f'{keyed.what} has no column "{names[0]}" to order by', hint=hint)
        field = keyed.schema.field(names[0])
        if _t.is_nested(field.type):
            raise UsageError(
                f'{keyed.what} cannot be ordered by "{field.name}"', detail=f"it is {type_name(field)}"
            )
        return names


def index_columns(keyed: KeyedSchema, order: str | None) -> list[str]:
    """Return the columns of the index that a view in the order of a column has; none without one."""
    if order is None:
        return []
    ViewQuery(order=order).check(keyed)
    columns = list(dict.fromkeys([*keyed.key[:-1], order, keyed.key[-1]]))
    return [] if columns == list(keyed.key) else columns
