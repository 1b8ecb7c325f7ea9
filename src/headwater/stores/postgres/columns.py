"""Arrow columns as PostgreSQL reads them: its types, and CSV for ``COPY``.

Nested columns and free JSON are JSONB, TINYINT is SMALLINT; everything else has a type of its own.
Invariant: what is read back from the table is the value that was given.
"""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.csv as csv

from headwater.record import DELETED
from headwater.schema import is_variant
from headwater.values import jsonl, jsonl_columns
from headwater.values.fitting import Fitted

_t = pa.types
_TYPES = {
    pa.bool_(): "BOOLEAN",
    pa.int8(): "SMALLINT",
    pa.int16(): "SMALLINT",
    pa.int32(): "INTEGER",
    pa.int64(): "BIGINT",
    pa.float32(): "REAL",
    pa.float64(): "DOUBLE PRECISION",
    pa.string(): "TEXT",
    pa.binary(): "BYTEA",
    pa.date32(): "DATE",
    pa.timestamp("us", "UTC"): "TIMESTAMP WITH TIME ZONE",
    pa.timestamp("us"): "TIMESTAMP",
}


def sql_type(field: pa.Field) -> str:
    """Return the PostgreSQL type of a column."""
    if is_variant(field) or _t.is_nested(field.type):
        return "JSONB"
    if _t.is_decimal(field.type):
        return f"NUMERIC({field.type.precision},{field.type.scale})"
    return _TYPES[field.type]


def to_csv(fitted: Fitted) -> memoryview:
    """Return rows as CSV: a null is nothing at all, and a text is always in quotes."""
    columns = [_text(column) for column in fitted.rows.columns] + [pa.array(fitted.deleted)]
    table = pa.table(columns, names=[*fitted.rows.schema.names, DELETED])
    encoded = io.BytesIO()
    csv.write_csv(table, encoded, csv.WriteOptions(include_header=False, quoting_style="needed"))
    return encoded.getbuffer()


def to_batch(rows: Sequence[Sequence[Any]], schema: pa.Schema) -> pa.RecordBatch:
    """Return rows that psycopg has fetched as Arrow."""
    columns = zip(*rows, strict=True) if rows else ([] for _ in schema)
    arrays = [_array(list(values), field) for values, field in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _array(values: list[Any], field: pa.Field) -> pa.Array:
    if is_variant(field):
        return pa.array([None if v is None else _compact(v) for v in values], pa.string())
    if _t.is_nested(field.type):
        return jsonl_columns.column(values, field.type)
    return pa.array(values, field.type)


def _compact(value: Any) -> str:
    # Not by orjson, which refuses whole numbers of more than 64 bits; PostgreSQL has them.
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _text(column: pa.Array) -> pa.Array:
    """Return a column in a type that CSV has."""
    if _t.is_nested(column.type):
        return jsonl.text(column)
    if _t.is_binary(column.type):
        return pa.array([None if v is None else "\\x" + v.hex() for v in column.to_pylist()], pa.string())
    return column.cast(pa.string()) if _t.is_decimal(column.type) else column
