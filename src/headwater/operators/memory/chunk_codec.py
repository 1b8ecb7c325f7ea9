"""Chunks that hold rows of several tables: each row in the column of its table, with extra columns beside it.

Invariant: ``decode`` gives back the rows of a table in their order, however the chunk was cut since.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.operators.event_time import NEVER, times

CLOCK = "clock"
ExtraColumns = Mapping[str, npt.NDArray[Any]]


def encode(tables: Mapping[str, pa.Table], watermark: int, extra: ExtraColumns | None = None) -> pa.Table:
    """Return the rows of all tables, one table after the other, and a clock; a row at least, for the clock.

    ``extra`` columns have a value for each row, in the same order.
    """
    structs = {name: _struct(rows) for name, rows in tables.items()}
    count, start, columns = sum(map(len, structs.values())), 0, {}
    height = max(count, 1)
    for name, struct in structs.items():
        end = start + len(struct)
        nulls = (pa.nulls(start, struct.type), pa.nulls(height - end, struct.type))
        columns[name] = pa.concat_arrays([nulls[0], struct, nulls[1]])
        start = end
    for name, values in (extra or {}).items():
        columns[name] = pa.array(np.append(values, np.zeros(height - count, values.dtype)))
    return pa.table({**columns, CLOCK: np.full(height, watermark)})


def decode(chunk: pa.Table, name: str) -> pa.Table:
    """Return the rows of one table."""
    return pa.Table.from_struct_array(chunk.column(name).combine_chunks().drop_null())


def extra_column(chunk: pa.Table, name: str, column: str) -> npt.NDArray[Any]:
    """Return the values of an extra column for the rows of one table."""
    values: npt.NDArray[Any] = chunk.column(column).filter(chunk.column(name).is_valid()).to_numpy()
    return values


def decode_watermark(chunk: pa.Table) -> int:
    """Return the clock of a chunk."""
    return int(times(chunk, CLOCK).max(initial=NEVER))


def _struct(rows: pa.Table) -> pa.StructArray:
    columns = [column.combine_chunks() for column in rows.columns]
    return pa.StructArray.from_arrays(columns, fields=list(rows.schema))
