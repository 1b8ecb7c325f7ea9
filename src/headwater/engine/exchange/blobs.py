"""Rows as blobs: many rows of a bucket cross Spark as one value.

Spark's Python worker would otherwise walk every row. Blobs of several tasks meet in a bucket in any
order, so each says which task it is of. Invariant: the rows of a bucket keep their order, from the
batches that go in to the operator, and a repeated micro-batch has the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.engine.exchange import routing, worker_gc

BUCKET, TASK, TAG, BLOB = "bucket", "task", "tag", "blob"
PACKED = "bucket INT, task INT, blob BINARY"
RESULT = "bucket INT, tag STRING, blob BINARY"
TALLY = -1
"""Stands in the place of a bucket where a task tells how many rows it has packed."""


def encode(table: pa.Table) -> bytes:
    """Return a table as bytes; each of its batches stays one."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue().to_pybytes())


def decode(blob: bytes) -> pa.Table:
    """Return the table that ``encode`` was given."""
    return pa.ipc.open_stream(pa.py_buffer(blob)).read_all()


def decode_all(blobs: Iterable[bytes], schema: pa.Schema) -> pa.Table:
    """Return the rows of several blobs, in order, in a schema."""
    tables = [decode(blob).cast(schema) for blob in blobs]
    return pa.concat_tables(tables) if tables else schema.empty_table()


def packing(
    key: Sequence[str], count: int, tally: bool
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return what packs a task's rows into a blob per bucket, and tells how many they are if it is asked."""

    def pack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        worker_gc.freeze()
        rows = _table(batches)
        if rows is None:
            return
        from pyspark import TaskContext  # a state is read and written without it

        context = TaskContext.get()
        task = context.partitionId() if context is not None else 0
        yield packed(rows, key, count, task, tally=tally)

    return pack


def packed(rows: pa.Table, key: Sequence[str], count: int, task: int, *, tally: bool) -> pa.RecordBatch:
    """Return rows as a blob per bucket, and how many they are if that is asked."""
    found = {number: encode(part) for number, part in split(rows, routing.buckets(rows, key, count))}
    if tally:
        found[TALLY] = str(rows.num_rows).encode()
    return pa.RecordBatch.from_pydict(
        {
            BUCKET: pa.array(found, pa.int32()),
            TASK: pa.array([task] * len(found), pa.int32()),
            BLOB: pa.array(list(found.values()), pa.binary()),
        }
    )


def _table(batches: Iterator[pa.RecordBatch]) -> pa.Table | None:
    listed = list(batches)
    return pa.Table.from_batches(listed).combine_chunks() if listed else None


def split(rows: pa.Table, buckets: npt.NDArray[np.int32]) -> Iterator[tuple[int, pa.Table]]:
    """Yield each bucket with its rows, in their order."""
    if not rows.num_rows:
        return
    order = np.argsort(buckets, kind="stable")
    rows, buckets = rows.take(pa.array(order)), buckets[order]
    starts = np.flatnonzero(np.diff(buckets, prepend=-1))
    for start, stop in zip(starts, [*starts[1:], len(buckets)], strict=True):
        yield int(buckets[start]), rows.slice(start, stop - start).combine_chunks()
