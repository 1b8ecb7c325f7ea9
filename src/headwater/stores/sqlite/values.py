"""How the values of a view lie in SQLite.

=====================  ==========================================================================
BOOLEAN, integers      INTEGER
FLOAT, DOUBLE          REAL; NaN, which SQLite would make a null, is the text ``NaN``: it sorts last
STRING, VARIANT        TEXT
BINARY                 BLOB
DATE, TIMESTAMP        INTEGER: days, or microseconds, since 1970
DECIMAL up to 18       INTEGER: the unscaled number
DECIMAL beyond         BLOB of 16 bytes: the unscaled number plus 2**127, most significant byte first
ARRAY, MAP, STRUCT     TEXT: JSON as in ``headwater.values.jsonl``
=====================  ==========================================================================

Invariant: ``decode(encode(column, field), field)`` is the column, and two values that are not
nested compare in SQLite as they do in Spark.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from headwater.values import jsonl, jsonl_columns
from headwater.values.one_value import fitted

_t = pa.types
_SHORT = 18
"""Digits of a decimal that always fit into 64 bits."""
_SIGN = 1 << 127


def sql_type(field: pa.Field) -> str:
    """Return the SQLite type of a column; a float has none, so that it is stored as it comes."""
    kind = field.type
    if _t.is_floating(kind):
        return ""
    if _t.is_binary(kind) or (_t.is_decimal(kind) and kind.precision > _SHORT):
        return "BLOB"
    return "TEXT" if _t.is_string(kind) or _t.is_nested(kind) else "INTEGER"


def encode(column: pa.Array, field: pa.Field) -> list[Any]:
    """Return a column's values as SQLite takes them."""
    kind = field.type
    if _t.is_floating(kind):
        return _encode_floats(column)
    if _t.is_decimal(kind):
        return _encode_decimals(column, kind.precision)
    if _t.is_nested(kind):
        return _listed(jsonl.text(column))
    if _t.is_date(kind):
        return _listed(column.cast(pa.int32()))
    return _listed(column.cast(pa.int64()) if _t.is_timestamp(kind) else column)


def decode(values: Sequence[Any], field: pa.Field) -> pa.Array:
    """Return what was stored as an Arrow column."""
    kind = field.type
    if _t.is_floating(kind):
        return _decode_floats(values, kind)
    if _t.is_decimal(kind):
        return _decode_decimals(values, kind)
    if _t.is_nested(kind):
        return jsonl_columns.column([None if v is None else orjson.loads(v) for v in values], kind)
    if _t.is_date(kind):
        return pa.array(values, pa.int32()).cast(kind)
    if _t.is_timestamp(kind):
        return pa.array(values, pa.int64()).cast(kind)
    if _t.is_boolean(kind):
        return pa.array(values, pa.int8()).cast(kind)
    return pa.array(values, kind)


def encode_one(value: Any, field: pa.Field, what: str) -> Any:
    """Return one value, given by a reader, as it would be stored."""
    if (type(value) is str and _t.is_string(field.type)) or (type(value) is int and field.type == pa.int64()):
        return _checked(value, field, what)
    return encode(fitted(value, field, what), field)[0]


def _checked(value: str | int, field: pa.Field, what: str) -> Any:
    """Return what is stored as it is; Arrow takes ten times as long to say the same."""
    right = -(1 << 63) <= value < 1 << 63 if isinstance(value, int) else value.isascii() or _is_text(value)
    return value if right else fitted(value, field, what)


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _listed(column: pa.Array) -> list[Any]:
    # numpy makes lists of numbers and texts several times faster than Arrow does.
    if column.null_count:
        return list(column.to_pylist())
    return list(column.to_numpy(zero_copy_only=False).tolist())


def _encode_floats(column: pa.Array) -> list[Any]:
    values = _listed(column)
    if not pc.any(pc.is_nan(column)).as_py():
        return values
    return ["NaN" if value != value else value for value in values]


def _decode_floats(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    return pa.array([float("nan") if value == "NaN" else value for value in values], kind)


def _encode_decimals(column: pa.Array, precision: int) -> list[Any]:
    words = np.frombuffer(column.buffers()[1], "<u8").reshape(-1, 2)
    words = words[column.offset : column.offset + len(column)]
    if precision <= _SHORT:
        values = words[:, 0].view(np.int64).tolist()
    else:
        swapped = words[:, ::-1] ^ np.array([1 << 63, 0], np.uint64)
        values = [each.tobytes() for each in swapped.astype(">u8")]
    if not column.null_count:
        return list(values)
    return [
        value if there else None for value, there in zip(values, column.is_valid().to_pylist(), strict=True)
    ]


def _decode_decimals(values: Sequence[Any], kind: pa.Decimal128Type) -> pa.Array:
    numbers = [None if v is None else _unscaled(v).to_bytes(16, "little", signed=True) for v in values]
    stored = pa.array(numbers, pa.binary(16))
    return pa.Array.from_buffers(kind, len(stored), stored.buffers()[:2], stored.null_count)


def _unscaled(value: int | bytes) -> int:
    return value if isinstance(value, int) else int.from_bytes(value, "big") - _SIGN
