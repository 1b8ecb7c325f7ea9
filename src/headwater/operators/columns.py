"""What an operator asks of the columns of its rows, told before any row comes.

Invariant: an operator whose ``output_schema`` has passed these checks finds every column that it names.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater import schema as ddl
from headwater.errors import SchemaError, UsageError, nearest


def check_columns(operator: str, names: Sequence[str], schema: pa.Schema) -> None:
    """Refuse a name that the rows do not have, and a key of no columns."""
    if not names:
        raise UsageError(f"{operator} has no columns to go by", hint="name at least one column")
    for name in names:
        if name not in schema.names:
            raise UsageError(
                f'{operator} finds no column "{name}" in its rows',
                detail=f"the columns are {', '.join(schema.names)}",
                hint=nearest(name, schema.names),
            )


def check_time(operator: str, name: str, schema: pa.Schema) -> None:
    """Refuse an event time that the rows do not have, or that is no timestamp in microseconds."""
    check_columns(operator, [name], schema)
    kind = schema.field(name).type
    if not pa.types.is_timestamp(kind) or kind.unit != "us":
        raise UsageError(
            f'{operator} cannot take column "{name}" as the event time',
            detail=f"it is {type_text(schema.field(name))}",
            hint="an event time is a TIMESTAMP, in microseconds",
        )


def unused_name(name: str, names: Sequence[str]) -> str:
    """Return a name for a column beside those of the user's, which may have any name."""
    while name in names:
        name += "_"
    return name


def one_array(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return a column in one piece."""
    if not isinstance(column, pa.ChunkedArray):
        return column
    array = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    # Arrow does not combine what does not fit one array of its kind, but says so by returning chunks.
    return pa.concat_arrays(array.chunks) if isinstance(array, pa.ChunkedArray) else array


def plain_values(column: pa.Array | pa.ChunkedArray, missing: int | bool = 0) -> npt.NDArray[Any]:
    """Return whole numbers or booleans, with one of them where there is none."""
    filled = one_array(column.fill_null(missing) if column.null_count else column)
    values: npt.NDArray[Any] = filled.to_numpy(zero_copy_only=False)
    return values


def only(rows: pa.Table, chosen: npt.NDArray[np.bool_]) -> pa.Table:
    """Return the rows that are chosen; all of them as they are."""
    return rows if chosen.all() else rows.take(pa.array(np.flatnonzero(chosen)))


def null_rows(schema: pa.Schema, count: int) -> pa.Table:
    """Return rows without a value."""
    return pa.Table.from_arrays([pa.nulls(count, field.type) for field in schema], schema=schema)


def type_text(field: pa.Field) -> str:
    """Return the name of a column's type for an error, also of one that Spark does not have."""
    try:
        return ddl.type_name(field)
    except SchemaError:
        return str(field.type)
