"""The three forms in which records are printed: a table, lines of JSON, CSV.

Invariant: a batch has left the process when ``write`` returns, so that it may be committed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from typing import BinaryIO

import pyarrow as pa
import pyarrow.compute as pc

from headwater import Topic
from headwater.cli.formats.cell_text import cells
from headwater.cli.formats.record_grid import RecordGrid
from headwater.record import DELETED, read_schema
from headwater.values import jsonl
from headwater.values.csv_text import to_csv

BLOCK = 1000
Write = Callable[[pa.RecordBatch], None]


def writer(form: str, topic: Topic, meta: bool) -> Write:
    """Return what prints batches of a topic to stdout."""
    schema = read_schema(topic.schema, topic.compacted, meta)
    write = _table(schema) if form == "table" else _ndjson(topic) if form == "ndjson" else _csv()
    return _in_blocks(write, schema.names)


def row_writer(form: str, schema: pa.Schema) -> Write:
    """Return what prints batches of a view to stdout; one without rows prints the header of CSV."""
    return writer(form, Topic("view", (schema,)), meta=False)


def _in_blocks(write: Write, names: list[str]) -> Write:
    """Print large batches piece by piece: memory stays small, and the first rows come at once.

    A topic may get more columns meanwhile; those that were there at the start are printed.
    """

    def written(batch: pa.RecordBatch) -> None:
        batch = batch.select(names)
        for at in range(0, len(batch) or 1, BLOCK):
            write(batch.slice(at, BLOCK))
        sys.stdout.flush()

    return written


def _table(schema: pa.Schema) -> Write:
    grid = RecordGrid(schema.names, [_is_number(field.type) for field in schema])

    def write(batch: pa.RecordBatch) -> None:
        columns = [cells(column, field) for column, field in zip(batch.columns, batch.schema, strict=True)]
        grid.write(list(zip(*columns, strict=True)))

    return write


def _is_number(kind: pa.DataType) -> bool:
    return any(test(kind) for test in (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal))


def _ndjson(topic: Topic) -> Write:
    out = sys.stdout.buffer

    def write(batch: pa.RecordBatch) -> None:
        batch = _only_true_deleted(batch)
        # A topic of the batch's own columns: the metadata is encoded like any other column.
        lines = jsonl.encode(batch, replace(topic, schemas=(batch.schema,)))
        out.write(b"".join(line + b"\n" for line in lines))
        out.flush()

    return write


def _csv() -> Write:
    out = sys.stdout.buffer
    header = True

    def write(batch: pa.RecordBatch) -> None:
        nonlocal header
        _write_csv(batch, out, header)
        header = False

    return write


def _write_csv(batch: pa.RecordBatch, out: BinaryIO, header: bool) -> None:
    out.write(to_csv(batch, header))
    out.flush()


def _only_true_deleted(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Leave ``_deleted`` to the tombstones: JSON has no member for a null."""
    if DELETED not in batch.schema.names:
        return batch
    at = batch.schema.names.index(DELETED)
    column = batch.column(at)
    marks = pc.if_else(pc.fill_null(column, False), column, pa.scalar(None, pa.bool_()))
    return batch.set_column(at, batch.schema.field(at), marks)
