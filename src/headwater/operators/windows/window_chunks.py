"""Chunks of the states of windows: each kind of rows is a column of structs, null where a row is of another.

Invariant: ``decode`` gives back the rows that were encoded, in their order; and the clock is always there.
"""

from __future__ import annotations

import pyarrow as pa

from headwater.operators.columns import one_array
from headwater.operators.event_time import times
from headwater.operators.memory.partials import Entries
from headwater.operators.operator import NEVER

CLOCK = "clock"
PLACE = pa.field("_place", pa.int64())


def encode(parts: dict[str, pa.Table], watermark: int) -> pa.Table:
    """Return a chunk of rows of several kinds; if there are none, one row has the clock."""
    structs = {name: _struct(rows) for name, rows in parts.items()}
    count = max(sum(map(len, structs.values())), 1)
    columns, before = {}, 0
    for name, array in structs.items():
        after = count - before - len(array)
        columns[name] = pa.concat_arrays([pa.nulls(before, array.type), array, pa.nulls(after, array.type)])
        before += len(array)
    return pa.table({**columns, CLOCK: pa.repeat(pa.scalar(watermark, pa.int64()), count)})


def decode(chunk: pa.Table, kind: str) -> pa.Table:
    """Return the rows of a kind."""
    return pa.Table.from_struct_array(one_array(chunk.column(kind)).drop_null())


def decode_watermark(chunk: pa.Table) -> int:
    """Return the latest clock of a chunk."""
    return int(times(chunk, CLOCK).max(initial=NEVER))


def chunk_rows(entries: Entries, by_major: bool = True) -> pa.Table:
    """Return the rows of entries, and before them the number that is not the key's."""
    positions = entries.major if by_major else entries.minor
    return entries.rows.add_column(0, PLACE, pa.array(positions))


def _struct(rows: pa.Table) -> pa.StructArray:
    return pa.StructArray.from_arrays(
        [one_array(column) for column in rows.columns], fields=list(rows.schema)
    )
