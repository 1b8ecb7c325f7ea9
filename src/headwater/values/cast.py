"""Arrow columns in another type, without changing a value: Arrow would drop a field without a word.

Invariant: from ``cast`` every value is the one that was handed over, in the topic's type.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.topic import Topic
from headwater.values import floats
from headwater.values.nested import compact, unknown_field

_t = pa.types


def cast(column: pa.Array, to: pa.DataType, path: str, topic: Topic) -> pa.Array:
    """Return a column in another type, or raise where a value would change: ``Misfit`` or Arrow's own.

    ``path`` names the column, or the field within it, in an error.
    """
    have = column.type
    if have == to:
        return column
    if _t.is_dictionary(have):
        return cast(column.dictionary_decode(), to, path, topic)
    if _t.is_run_end_encoded(have):
        return cast(pc.run_end_decode(column), to, path, topic)
    if _t.is_float16(have):  # which Arrow can widen, but not compare
        return cast(pc.cast(column, pa.float32()), to, path, topic)
    if _t.is_null(have):
        return pa.nulls(len(column), to)
    if _t.is_struct(to) and _t.is_struct(have):
        return _cast_struct(column, to, path, topic)
    if _t.is_map(to) and _t.is_map(have):
        return _cast_map(column, to, path, topic)
    if _t.is_list(to) and _is_list(have):
        return _cast_list(column, to, path, topic)
    if not _convertible(have, to):
        raise pa.ArrowTypeError(f"{have} is not converted to {to}")
    return _cast_plain(column, to)


def _cast_plain(column: pa.Array, to: pa.DataType) -> pa.Array:
    have = column.type
    if _t.is_floating(to):
        return _cast_to_float(column, to)
    if _t.is_decimal(to) and _t.is_integer(have):
        # Straight to fewer digits than the integer type could need, Arrow refuses whatever the values.
        column = pc.cast(column, pa.decimal128(38, to.scale))
    made = pc.cast(column, to)
    if _t.is_floating(have):  # where Arrow rounds; elsewhere it refuses by itself
        same = pc.equal(pc.cast(made, have, safe=False), column)
        if not pc.all(same, min_count=0).as_py():
            value = column[pc.index(same, False).as_py()].as_py()
            raise pa.ArrowInvalid(f"{value!r} would be changed to fit {to}")
    return made


def _cast_to_float(column: pa.Array, to: pa.DataType) -> pa.Array:
    try:
        doubles = pc.cast(column, pa.float64())
    except pa.ArrowInvalid:  # integers over 53 bits, some of which a double can hold
        doubles = pa.array([v if v is None else floats.double(v) for v in column.to_pylist()], pa.float64())
    return floats.single(doubles) if to == pa.float32() else doubles


def _cast_struct(column: pa.Array, to: pa.DataType, path: str, topic: Topic) -> pa.Array:
    parts = {field.name: part for field, part in zip(column.type, column.flatten(), strict=True)}
    if len(parts) < column.type.num_fields:
        raise pa.ArrowTypeError(f'"{path}" has a field twice')
    for name in parts:
        if to.get_field_index(name) < 0:
            raise unknown_field(path, name, to, topic)
    made = [
        cast(parts[f.name], f.type, f"{path}.{f.name}", topic)
        if f.name in parts
        else pa.nulls(len(column), f.type)
        for f in to
    ]
    return pa.StructArray.from_arrays(made, fields=list(to), mask=column.is_null())


def _cast_list(column: pa.Array, to: pa.DataType, path: str, topic: Topic) -> pa.Array:
    sizes = pc.fill_null(pc.list_value_length(column), 0).to_numpy(zero_copy_only=False)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    values = cast(column.flatten(), to.value_type, path, topic)
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), values, type=to, mask=column.is_null())


def _cast_map(column: pa.Array, to: pa.DataType, path: str, topic: Topic) -> pa.Array:
    column = compact(column)
    pair = [to.key_field, to.item_field]
    made = [cast(column.keys, to.key_type, path, topic), cast(column.items, to.item_type, path, topic)]
    entries = pa.StructArray.from_arrays(made, fields=pair)
    return pa.Array.from_buffers(to, len(column), column.buffers()[:2], column.null_count, children=[entries])


def _convertible(have: pa.DataType, to: pa.DataType) -> bool:
    """Tell whether a value of one plain type may be the same value in another."""
    if _t.is_string(to):
        return bool(_t.is_large_string(have) or _t.is_string_view(have))
    if _t.is_binary(to):
        sized = _t.is_fixed_size_binary(have) and not _t.is_decimal(have)
        return bool(_t.is_large_binary(have) or _t.is_binary_view(have) or sized)
    if _t.is_integer(to):
        return bool(_t.is_integer(have) or _t.is_floating(have) or _t.is_decimal(have))
    if _t.is_floating(to):
        return bool(_t.is_integer(have) or _t.is_floating(have))
    if _t.is_decimal(to):
        return bool(_t.is_integer(have) or _t.is_floating(have) or _t.is_decimal(have))
    if _t.is_timestamp(to):
        if _t.is_timestamp(have):  # a wall clock elsewhere is not the one in UTC
            return to.tz is not None or have.tz in (None, "UTC")
        return bool(_t.is_date(have))
    return bool(_t.is_date(to) and _t.is_date(have))


def _is_list(kind: pa.DataType) -> bool:
    return bool(
        _t.is_list(kind) or _t.is_large_list(kind) or _t.is_fixed_size_list(kind) or _t.is_list_view(kind)
    )
