"""What a warehouse table is declared to hold: rows by key, and from when to when each version held.

Invariant: no column of the user's has the name of one that the history needs.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from headwater.errors import SchemaError
from headwater.values.keyed import KeyedSchema, declare

FROM, TO, CURRENT = "valid_from", "valid_to", "is_current"
_TIME = pa.timestamp("us", "UTC")
_HISTORY = (pa.field(FROM, _TIME), pa.field(TO, _TIME), pa.field(CURRENT, pa.bool_()))


@dataclass(frozen=True)
class WarehouseSchema(KeyedSchema):
    """Rows by key, with or without their history."""

    history: bool = True

    @property
    def stored(self) -> pa.Schema:
        """The columns of the table: any may be null there, for a reader cannot be told otherwise later."""
        own = _HISTORY if self.history else ()
        plain = [pa.field(field.name, field.type) for field in self.schema]
        return pa.schema([*plain, *own])


def declare_warehouse(
    what: str, schema: str | pa.Schema, key: str | tuple[str, ...], history: bool
) -> WarehouseSchema:
    """Check a declaration."""
    keyed = declare(what, schema, key)
    names = [name.lower() for name in keyed.schema.names]
    for name in (FROM, TO, CURRENT) if history else ():
        if name in names:
            raise SchemaError(
                f'{what} cannot have a column "{name}"',
                detail="the history has one of that name",
                hint="give the column another name, or keep no history: history=False",
            )
    return WarehouseSchema(keyed.what, keyed.schema, keyed.key, history)
