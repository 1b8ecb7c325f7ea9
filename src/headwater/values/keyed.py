"""Rows on their way into a store that keeps one row per key.

Invariant: ``settle`` returns each key once, in the order of keys, with the last row the batch had
for it; a deleted row has nothing but its key.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater import schema as schemas
from headwater.errors import UsageError, nearest
from headwater.values.fitting import Fitted, TargetSchema, fit, shaped


@dataclass(frozen=True)
class KeyedSchema(TargetSchema):
    """What a store with one row per key is declared to hold."""

    @property
    def key_fields(self) -> list[pa.Field]:
        """The columns of the key, in the key's order."""
        return [self.schema.field(name) for name in self.key]

    @property
    def value_fields(self) -> list[pa.Field]:
        """The other columns, in the schema's order."""
        return [field for field in self.schema if field.name not in self.key]


def declare(what: str, schema: str | pa.Schema, key: str | tuple[str, ...]) -> KeyedSchema:
    """Check a declaration: the key is there, and its values have one form."""
    keyed = KeyedSchema(what, shaped(what, schema).schema, (key,) if isinstance(key, str) else tuple(key))
    if not keyed.key:
        raise UsageError(f"{what} needs a key", hint="name the column or columns that tell its rows apart")
    if len(set(keyed.key)) < len(keyed.key):
        raise UsageError(f"key of {what} has a column twice", detail=", ".join(keyed.key))
    for name in keyed.key:
        _check_key(keyed, name)
    return keyed


def settle(table: pa.Table, keyed: KeyedSchema) -> Fitted:
    """Check a batch's rows and keep the last of each key."""
    fitted = fit(table, keyed)
    if not len(fitted):
        return fitted
    last = last_of_each_key(fitted.rows, keyed.key)
    return _without_values(Fitted(fitted.rows.take(last), fitted.deleted[last.to_numpy()]), keyed)


def key_values(key: Any, keyed: KeyedSchema) -> tuple[Any, ...]:
    """Return the values of a key that is given as a scalar, a sequence or a mapping."""
    if isinstance(key, Mapping):
        values = tuple(key[name] for name in keyed.key if name in key)
        fits = len(values) == len(key)
    else:
        values, fits = tuple(key) if isinstance(key, tuple | list) else (key,), True
    if not fits or len(values) != len(keyed.key):
        raise UsageError(f"key of {keyed.what} is ({', '.join(keyed.key)})", detail=f"got {key!r:.80}")
    return values


def _check_key(keyed: KeyedSchema, name: str) -> None:
    if name not in keyed.schema.names:
        known = keyed.schema.names
        raise UsageError(f'{keyed.what} has no column "{name}" for its key', hint=nearest(name, known))
    field = keyed.schema.field(name)
    if pa.types.is_nested(field.type) or pa.types.is_floating(field.type):
        raise UsageError(
            f'column "{name}" cannot be in the key of {keyed.what}',
            detail=f"{schemas.type_name(field)} values have no one form to be found by",
        )


def last_of_each_key(rows: pa.RecordBatch, key: tuple[str, ...]) -> pa.Array:
    """Return the places of the rows that count, in the order of their keys."""
    # The sort is stable, so that the last of several equal keys is the last one of the batch.
    order = pc.sort_indices(rows, [(name, "ascending") for name in key])
    ends = np.zeros(len(rows), bool)
    ends[-1] = True
    for name in key:
        column = rows.column(name).take(order)
        differs = pc.not_equal(column.slice(0, len(column) - 1), column.slice(1))
        ends[:-1] |= differs.to_numpy(zero_copy_only=False)
    return order if ends.all() else order.filter(pa.array(ends))


def _without_values(fitted: Fitted, keyed: KeyedSchema) -> Fitted:
    if not fitted.deleted.any():
        return fitted
    gone, rows = pa.array(fitted.deleted), fitted.rows
    columns = [
        column if field.name in keyed.key else pc.if_else(gone, pa.scalar(None, field.type), column)
        for field, column in zip(rows.schema, rows.columns, strict=True)
    ]
    return replace(fitted, rows=pa.RecordBatch.from_arrays(columns, schema=rows.schema))
