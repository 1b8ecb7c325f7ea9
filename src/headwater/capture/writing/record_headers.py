"""The headers that tell of each captured record where it comes from.

``op`` (insert, update, delete, truncate, read), ``position`` and ``transaction`` in the source, ``index``
within the transaction, ``committed`` (microseconds since 1970), and ``snapshot`` where it was found by one.
Those of an event of an outbox also have ``row``, the key of the row there, and what columns say.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater import record
from headwater.capture.change import OPERATIONS, TableChanges

_NAMES: Final = ("op", "position", "transaction", "index", "committed")
_OPERATIONS: Final = pa.array(OPERATIONS)


def of_changes(changes: TableChanges) -> pa.Array:
    """Return the headers of each change."""
    once, count = changes.transactions, len(changes)
    told = (
        _OPERATIONS,
        pa.array(once.position, pa.string()),
        pa.array(once.id, pa.string()),
        pa.array(changes.index).cast(pa.string()),
        pa.array(once.committed).cast(pa.string()),
    )
    of = changes.transaction
    places = np.stack([changes.operation, of, of, np.arange(count), of], axis=1)
    places += np.cumsum([0, *map(len, told[:-1])])
    values = pa.concat_arrays(told).take(pa.array(places.ravel()))
    return _maps(_repeated(_NAMES, count), values, count)


def of_snapshot(operation: int, position: str, count: int) -> pa.Array:
    """Return the headers of rows that come from no transaction of the stream."""
    told = {"op": OPERATIONS[operation], "position": position, "snapshot": "true"}
    return _maps(_repeated(tuple(told), count), _repeated(tuple(told.values()), count), count)


def with_columns(headers: pa.MapArray, columns: Mapping[str, pa.Array]) -> pa.MapArray:
    """Return the headers of rows, each as many, with those that columns say, where they have a value."""
    count, width = len(headers), len(columns)
    names, values = headers.keys, headers.items
    own = len(names) // count if count else 0
    places = np.empty((count, own + width), np.int64)
    places[:, :own] = np.arange(count * own).reshape(count, own)
    places[:, own:] = count * own + np.arange(width * count).reshape(width, count).T
    all_values = pa.concat_arrays([values, *(_bytes(each) for each in columns.values())])
    all_names = pa.concat_arrays([names, pa.array(np.repeat(list(columns), count), pa.string())])
    valid = all_values.is_valid().to_numpy(zero_copy_only=False)[places]
    chosen = pa.array(places[valid])
    offsets = pa.array(np.concatenate([[0], np.cumsum(valid.sum(axis=1))]), pa.int32())
    return pa.MapArray.from_arrays(offsets, all_names.take(chosen), all_values.take(chosen))


def _bytes(column: pa.Array) -> pa.Array:
    return column if pa.types.is_binary(column.type) else column.cast(pa.string()).cast(pa.binary())


def _maps(names: pa.StringArray, values: pa.StringArray, count: int) -> pa.Array:
    """Return a map for each row, of as many names and values as each has."""
    width = len(names) // count if count else 0
    offsets = pa.array(np.arange(count + 1) * width, pa.int32())
    return pa.MapArray.from_arrays(offsets, names, values.view(pa.binary())).cast(record.HEADERS)


def _repeated(words: Sequence[str], count: int) -> pa.StringArray:
    """Return some words, again and again: written as bytes, for there are several of them for every row."""
    written = [word.encode() for word in words]
    ends = np.cumsum([0, *map(len, written)])
    offsets = np.empty(count * len(words) + 1, np.int32)
    starts: npt.NDArray[np.int64] = np.arange(count)[:, None] * ends[-1] + ends[:-1]
    offsets[:-1], offsets[-1] = starts.ravel(), count * ends[-1]
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(b"".join(written) * count)]
    return pa.Array.from_buffers(pa.string(), len(offsets) - 1, buffers)
