"""The order in which the rows of a batch are numbered, which must be the same when the batch is repeated.

Spark's tasks, and user code, may give the rows of a repeated micro-batch in another order. A log leaves
out what a partition has by its number, so numbers that follow the order of arrival would write one row
twice and leave another out, where only some partitions had got their part. Invariant: however the rows
of a batch are permuted, those of one partition have the same numbers; rows of one key keep their order.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headwater.topic import Topic
from headwater.values import jsonl, keys

_t = pa.types


def replay_order(table: pa.Table, topic: Topic) -> pa.Table:
    """Return the rows of a batch in the order in which they are numbered.

    A topic with one partition has a batch whole or not at all, so its rows stay as they are. With a key
    the rows of each partition come together. Without one a row's number decides on its partition, so the
    rows are ordered by their event time and then by all that they hold.
    """
    if topic.partitions == 1 or table.num_rows < 2:
        return table
    if not topic.key:
        return table.take(_by_value(table, topic.event_time))
    parts = _partitions(table, topic)
    if parts is None:
        return table
    return table.take(np.argsort(parts.astype(np.int16), kind="stable"))  # of 16 bits: by radix


def _partitions(table: pa.Table, topic: Topic) -> npt.NDArray[np.int32] | None:
    """Return the partition of each row; None where its key does not fit, which the log refuses."""
    if not set(topic.key) <= set(table.column_names):
        return None
    columns = [_one_array(table[name]) for name in topic.key]
    if any(column.null_count for column in columns):
        return None
    try:
        fitted = [
            column.cast(topic.schema.field(name).type)
            for column, name in zip(columns, topic.key, strict=True)
        ]
    except (pa.ArrowException, NotImplementedError):
        return None
    return keys.partitions(fitted, topic.partitions)


def _by_value(table: pa.Table, event_time: str | None) -> pa.Array:
    """Return the indices of the rows in an order that depends on nothing but their values."""
    names = sorted(table.column_names, key=lambda name: (name != event_time, name))
    columns = [_comparable(_one_array(table[name])) for name in names]
    sortable = pa.table(columns, names=[str(number) for number in range(len(columns))])
    return pc.sort_indices(sortable, [(name, "ascending") for name in sortable.column_names])


def _comparable(column: pa.Array) -> pa.Array:
    """Return a column in a type that is sorted so that no two different values are equal."""
    if _t.is_floating(column.type):  # by its bits: two zeros, and any NaN, are told apart
        width = column.type.bit_width
        kind = {16: pa.int16(), 32: pa.int32(), 64: pa.int64()}[width]
        return column.view(kind)
    if _t.is_nested(column.type) or _t.is_null(column.type):
        return jsonl.text(column)
    return column


def _one_array(column: pa.ChunkedArray) -> pa.Array:
    combined = column.combine_chunks()
    return pa.concat_arrays(combined.chunks) if isinstance(combined, pa.ChunkedArray) else combined
