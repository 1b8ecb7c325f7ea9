"""A batch's rows in the columns of a declared schema, or the reason why they do not fit.

Everything a batch can do wrong is found here, before a store is touched. Invariant: what ``fit``
returns has the declared columns in their order and types, with no value changed, and no null where
there may be none, except in the values of a deleted row.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headwater import schema as schemas
from headwater.errors import RowError, SchemaError, nearest
from headwater.record import DELETED
from headwater.topic import Topic
from headwater.values.cast import cast
from headwater.values.columns import Misfit


@dataclass(frozen=True)
class TargetSchema:
    """What a store is declared to hold."""

    what: str
    """As the store is called in errors: ``view "orders"``."""
    schema: pa.Schema
    key: tuple[str, ...] = ()


@dataclass(frozen=True)
class Fitted:
    """Rows that fit, and which of them are deletions."""

    rows: pa.RecordBatch
    deleted: npt.NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.rows)


def shaped(what: str, schema: str | pa.Schema) -> TargetSchema:
    """Check a declaration."""
    shape = TargetSchema(what, schemas.read(schema))
    if DELETED in (name.lower() for name in shape.schema.names):
        raise SchemaError(f'column name "{DELETED}" is reserved', hint="it marks the rows to be deleted")
    return shape


def fit(table: pa.Table, shape: TargetSchema) -> Fitted:
    """Return a batch's rows as they are declared, or raise what is wrong with the first bad one."""
    if not table.num_rows:
        return Fitted(pa.RecordBatch.from_pylist([], schema=shape.schema), np.zeros(0, bool))
    _check_names(table, shape)
    deleted = _deleted(table, shape)
    rows = pa.RecordBatch.from_arrays(
        [_column(table, field, shape) for field in shape.schema],
        schema=pa.schema([field.with_nullable(True) for field in shape.schema]),
    )
    _check_nulls(rows, deleted, shape)
    return Fitted(rows, deleted)


def _check_names(table: pa.Table, shape: TargetSchema) -> None:
    names, known = table.schema.names, [*shape.schema.names, DELETED]
    for name in names:
        if name not in known:
            hint = nearest(name, known) or "its columns: " + ", ".join(shape.schema.names)
            raise RowError(f'{shape.what} has no column "{name}"', hint=hint)
        if names.count(name) > 1:
            raise RowError(f'column "{name}" appears twice in a batch for {shape.what}')
    for name in shape.schema.names:
        if name not in names:
            part = "key column" if name in shape.key else "column"
            raise RowError(f'batch for {shape.what} lacks {part} "{name}"')


def _deleted(table: pa.Table, shape: TargetSchema) -> npt.NDArray[np.bool_]:
    if DELETED not in table.schema.names:
        return np.zeros(table.num_rows, bool)
    column = table[DELETED]
    if not pa.types.is_boolean(column.type):
        raise RowError(f'column "{DELETED}" of {shape.what} is BOOLEAN, not {column.type}')
    marks: npt.NDArray[np.bool_] = pc.fill_null(column, False).to_numpy()
    return marks


def _column(table: pa.Table, field: pa.Field, shape: TargetSchema) -> pa.Array:
    column = table[field.name].combine_chunks()
    if isinstance(column, pa.ChunkedArray):
        column = pa.concat_arrays(column.chunks)
    try:
        return cast(column, field.type, field.name, Topic(shape.what, (shape.schema,)))
    except RowError:  # it speaks of a topic, and all it can say is this
        raise _misfit(field, column.type, shape, "a field inside it is unknown") from None
    except Misfit:
        raise _misfit(field, column.type, shape, "a value would be changed") from None
    except (pa.ArrowException, NotImplementedError) as error:
        raise _misfit(field, column.type, shape, str(error).splitlines()[0]) from None


def _misfit(field: pa.Field, have: pa.DataType, shape: TargetSchema, detail: str) -> RowError:
    wanted = schemas.type_name(field)
    return RowError(f'column "{field.name}" of {shape.what} is {wanted}, not {have}', detail=detail)


def _check_nulls(rows: pa.RecordBatch, deleted: npt.NDArray[np.bool_], shape: TargetSchema) -> None:
    for field in shape.schema:
        column = rows.column(field.name)
        in_key = field.name in shape.key
        if not column.null_count or (field.nullable and not in_key):
            continue
        missing = column.is_null().to_numpy(zero_copy_only=False)
        if not in_key:
            missing = missing & ~deleted
        if missing.any():
            what = "key column" if in_key else "NOT NULL column"
            raise RowError(
                f'{what} "{field.name}" of {shape.what} is null',
                row=int(np.argmax(missing)),
                hint="leave the row out or fill the column",
            )
