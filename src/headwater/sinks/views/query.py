"""What a scan of a view asks for, and the SQL that answers it.

Invariant: a query that can be answered names only columns the view has, and compares each with a
value of its type.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from headwater.errors import UsageError, nearest
from headwater.schema import type_name
from headwater.sinks.keyed import Keyed
from headwater.sinks.views.tables import Tables, quoted
from headwater.sinks.views.values import encode_one

Condition = tuple[pa.Field, str, Any]
"""A column, a sign, and the value it is compared with."""


@dataclass(frozen=True)
class Query:
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

    def sql(self, tables: Tables) -> tuple[str, list[Any]]:
        """Return the statement for SQLite and its parameters; its columns are in the schema's order."""
        keyed = tables.keyed
        conditions = self.conditions(keyed)
        columns = ", ".join(quoted(name) for name in keyed.schema.names)
        where = " AND ".join(f"{quoted(field.name)} {sign} ?" for field, sign, _ in conditions) or "true"
        direction = " DESC" if self.descending else ""
        order = ", ".join(quoted(name) + direction for name in self.ordered(keyed))
        limit = self.checked_limit()
        return (
            f"SELECT {columns} FROM {tables.rows} WHERE {where} ORDER BY {order} LIMIT ?",  # noqa: S608
            [
                *(encode_one(value, field, keyed.what) for field, _, value in conditions),
                -1 if limit is None else limit,
            ],
        )

    def conditions(self, keyed: Keyed) -> list[Condition]:
        """Return which columns are compared, how, and with what."""
        if len(self.prefix) > len(keyed.key):
            raise UsageError(
                f"key of {keyed.what} is ({', '.join(keyed.key)})", detail=f"got {self.prefix!r:.80}"
            )
        fields = keyed.key_fields
        asked: list[Condition] = [(f, "=", value) for f, value in zip(fields, self.prefix, strict=False)]
        for sign, value in ((">=", self.start), ("<", self.end)):
            if value is not None:
                asked.append((self._ranged(fields, keyed), sign, value))
        return asked

    def _ranged(self, fields: list[pa.Field], keyed: Keyed) -> pa.Field:
        if len(self.prefix) == len(fields):
            raise UsageError(
                f"a scan of {keyed.what} by its whole key has no range",
                hint="start and end are values of the key column after those of the prefix",
            )
        return fields[len(self.prefix)]

    def ordered(self, keyed: Keyed) -> list[str]:
        """Return the columns to order by; the key settles it among equals, so it is the same every time."""
        names = list(keyed.key) if self.order is None else [self.order, *keyed.key]
        if names[0] not in keyed.schema.names:
            known = keyed.schema.names
            hint = nearest(names[0], known) or "its columns: " + ", ".join(known)
            raise UsageError(f'{keyed.what} has no column "{names[0]}" to order by', hint=hint)
        field = keyed.schema.field(names[0])
        if pa.types.is_nested(field.type):
            raise UsageError(
                f'{keyed.what} cannot be ordered by "{field.name}"', detail=f"it is {type_name(field)}"
            )
        return names

    def checked_limit(self) -> int | None:
        """Return how many rows are wanted, None for all."""
        number = isinstance(self.limit, int) and not isinstance(self.limit, bool)
        if self.limit is not None and not (number and self.limit >= 0):
            raise UsageError(f"limit is a number of rows, not {self.limit!r:.60}")
        return self.limit
