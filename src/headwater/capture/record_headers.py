"""The headers that tell of each captured record where it comes from.

``op`` (insert, update, delete, truncate, read), ``position`` and ``transaction`` in the source, ``index``
within the transaction, ``committed`` (microseconds since 1970), and ``snapshot`` where it was found by one.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater import record
from headwater.capture.change import OPERATIONS, TableChanges


def of_changes(changes: TableChanges) -> pa.Array:
    """Return the headers of each change."""
    once = changes.transactions
    of = pa.array(changes.transaction)
    return _maps(
        {
            "op": pa.array(OPERATIONS).take(pa.array(changes.operation)),
            "position": pa.array(once.position, pa.string()).take(of),
            "transaction": pa.array(once.id, pa.string()).take(of),
            "index": pa.array(changes.index).cast(pa.string()),
            "committed": pa.array(once.committed).cast(pa.string()).take(of),
        },
        len(changes),
    )


def of_snapshot(operation: int, position: str, count: int) -> pa.Array:
    """Return the headers of rows that come from no transaction of the stream."""
    told = {"op": OPERATIONS[operation], "position": position, "snapshot": "true"}
    return _maps({name: pa.repeat(value, count) for name, value in told.items()}, count)


def _maps(columns: Mapping[str, pa.Array], count: int) -> pa.Array:
    """Return a map for each row, of the names to the values that the row has in the columns."""
    width = len(columns)
    by_row = (np.arange(width)[None, :] * count + np.arange(count)[:, None]).ravel()
    names = pa.array(list(columns)).take(pa.array(np.tile(np.arange(width), count)))
    values = pa.concat_arrays(list(columns.values())).cast(pa.binary()).take(pa.array(by_row))
    offsets = pa.array(np.arange(count + 1) * width, pa.int32())
    return pc.cast(pa.MapArray.from_arrays(offsets, names, values), record.HEADERS)
