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
        """Return the statement and its parameters; its columns are in the schema's order."""
        keyed = tables.keyed
        conditions, parameters = self._conditions(keyed)
        columns = ", ".join(quoted(name) for name in keyed.schema.names)
        where = f"WHERE {' AND '.join(conditions)} " if conditions else ""
        return (
            f"SELECT {columns} FROM {tables.rows} {where}ORDER BY {self._order(keyed)} LIMIT ?",  # noqa: S608
            [*parameters, self._checked_limit()],
        )

    def _conditions(self, keyed: Keyed) -> tuple[list[str], list[Any]]:
        if len(self.prefix) > len(keyed.key):
            raise UsageError(
                f"key of {keyed.what} is ({', '.join(keyed.key)})", detail=f"got {self.prefix!r:.80}"
            )
        fields = keyed.key_fields
        asked = [(field, "=", value) for field, value in zip(fields, self.prefix, strict=False)]
        for sign, value in ((">=", self.start), ("<", self.end)):
            if value is not None:
                asked.append((self._ranged(fields, keyed), sign, value))
        conditions = [f"{quoted(field.name)} {sign} ?" for field, sign, _ in asked]
        return conditions, [encode_one(value, field, keyed.what) for field, _, value in asked]

    def _ranged(self, fields: list[pa.Field], keyed: Keyed) -> pa.Field:
        if len(self.prefix) == len(fields):
            raise UsageError(
                f"a scan of {keyed.what} by its whole key has no range",
                hint="start and end are values of the key column after those of the prefix",
            )
        return fields[len(self.prefix)]

    def _order(self, keyed: Keyed) -> str:
        """Return the order; the key settles it among equals, so that it is the same every time."""
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
        return ", ".join(quoted(name) + (" DESC" if self.descending else "") for name in names)

    def _checked_limit(self) -> int:
        if self.limit is None:
            return -1
        if not isinstance(self.limit, int) or isinstance(self.limit, bool) or self.limit < 0:
            raise UsageError(f"limit is a number of rows, not {self.limit!r:.60}")
        return self.limit
