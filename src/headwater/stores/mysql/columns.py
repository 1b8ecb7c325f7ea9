"""How the values of a table lie in MySQL and MariaDB.

=====================  =======================================================================
BOOLEAN, integers      BOOLEAN, TINYINT, SMALLINT, INT, BIGINT
FLOAT, DOUBLE          DOUBLE: a FLOAT would be sent with six digits; there is no NaN, no infinity
STRING                 LONGTEXT, in a key VARCHAR(255), compared byte by byte
BINARY                 LONGBLOB, in a key VARBINARY(255)
DATE                   DATE
TIMESTAMP              DATETIME(6), in UTC; TIMESTAMP_NTZ too
DECIMAL                DECIMAL
ARRAY, MAP, STRUCT     LONGTEXT: JSON as in ``headwater.values.jsonl``; VARIANT too
=====================  =======================================================================

Invariant: what is read back from the table is the value that was given.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from headwater.errors import RowError
from headwater.values import jsonl, jsonl_columns
from headwater.values.keyed import KeyedSchema

_t = pa.types
_TYPES = {
    pa.bool_(): "BOOLEAN",
    pa.int8(): "TINYINT",
    pa.int16(): "SMALLINT",
    pa.int32(): "INT",
    pa.int64(): "BIGINT",
    pa.float32(): "DOUBLE",
    pa.float64(): "DOUBLE",
    pa.date32(): "DATE",
}


def sql_type(field: pa.Field, *, key: bool) -> str:
    """Return the type of a column; one of a ``key`` has a length, so that it can be indexed."""
    kind = field.type
    if _t.is_nested(kind):
        return "LONGTEXT"
    if _t.is_string(kind):
        return "VARCHAR(255)" if key else "LONGTEXT"
    if _t.is_binary(kind):
        return "VARBINARY(255)" if key else "LONGBLOB"
    if _t.is_decimal(kind):
        return f"DECIMAL({kind.precision},{kind.scale})"
    return "DATETIME(6)" if _t.is_timestamp(kind) else _TYPES[kind]


def to_rows(rows: pa.RecordBatch, keyed: KeyedSchema) -> Iterator[tuple[Any, ...]]:
    """Yield rows as the client takes them: one by one, as the text of a statement is made of them."""
    columns = [_listed(rows.column(field.name), field, keyed.what) for field in keyed.schema]
    return zip(*columns, strict=True)


def to_batch(rows: Sequence[Sequence[Any]], schema: pa.Schema) -> pa.RecordBatch:
    """Return rows that were fetched as Arrow."""
    columns = zip(*rows, strict=True) if rows else ([] for _ in schema)
    arrays = [_array(list(values), field.type) for values, field in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, names=schema.names)


def _listed(column: pa.Array, field: pa.Field, what: str) -> list[Any]:
    if _t.is_floating(field.type) and pc.all(pc.is_finite(column)).as_py() not in (True, None):
        raise RowError(
            f'column "{field.name}" of {what} has a value that MySQL has not',
            detail="NaN, or an infinity",
            hint="make it a null, or text, in the node",
        )
    if _t.is_nested(field.type):
        return list(jsonl.text(column).to_pylist())
    return list((column.cast(pa.timestamp("us")) if _t.is_timestamp(field.type) else column).to_pylist())


def _array(values: list[Any], kind: pa.DataType) -> pa.Array:
    if _t.is_nested(kind):
        return jsonl_columns.column([None if v is None else orjson.loads(v) for v in values], kind)
    if _t.is_timestamp(kind):
        return pa.array(values, pa.timestamp("us")).cast(kind)
    if _t.is_boolean(kind):
        return pa.array(values, pa.int8()).cast(kind)
    return pa.array(values, kind)
