"""Conversions that change no value: Arrow would cut 1.5 to 1, and drop a field, without a word.

Invariant: after ``check`` (Python rows) or from ``cast`` (Arrow columns) every value is the one that
was handed over, in the topic's type; after ``check_within`` nested values keep NOT NULL and the
keys of maps apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from itertools import chain
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.errors import RowError, nearest
from headwater.log.topic import Topic
from headwater.schema import type_name

_FRACTIONAL = (float, Decimal, np.floating)
_t = pa.types


def check(rows: Sequence[Mapping[str, Any]], topic: Topic) -> None:
    """Refuse a fraction in a column of whole numbers, dates or times, and unknown nested fields."""
    for field in topic.schema:
        if _t.is_nested(field.type):
            _check_nested(rows, field, topic)
        elif _is_whole(field.type):
            # The set of types settles it for a whole chunk, at 40 ns a row.
            cut = (*_FRACTIONAL, datetime) if _t.is_date(field.type) else _FRACTIONAL
            if any(issubclass(t, cut) for t in _types(rows, field.name)):
                _refuse_first([row.get(field.name) for row in rows], field, topic)


def cast(column: pa.Array, to: pa.DataType, path: str, topic: Topic) -> pa.Array:
    """Return a column in another type, or raise ``pa.ArrowException`` where a value would change.

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


def check_within(column: pa.Array, field: pa.Field, topic: Topic) -> None:
    """Refuse a null in a NOT NULL field of a struct, and a map that has a key twice."""
    for problem, row in _problems(column, field.type, field.name, np.arange(len(column))):
        raise RowError(f'row does not fit topic "{topic.name}": {problem}', row=int(row))


# Python rows


def _types(rows: Sequence[Mapping[str, Any]], name: str) -> set[type]:
    try:
        return set(map(type, map(itemgetter(name), rows)))
    except KeyError:  # some rows lack the column
        return {type(row.get(name)) for row in rows}


def _check_nested(rows: Sequence[Mapping[str, Any]], field: pa.Field, topic: Topic) -> None:
    values = [row.get(field.name) for row in rows]
    if _holds(field.type, _t.is_struct):
        for path, name, kind in _unknown_within(values, field.type, field.name):
            raise _unknown_field(path, name, kind, topic, _row_with(values, field, name))
    if any(issubclass(t, _FRACTIONAL) for t in _types_within(values, field.type)):
        for number, value in enumerate(values):  # one by one, as some may well be cut
            if _cut_within(value, field.type):
                raise _error(value, field, topic, number)


def _unknown_within(
    values: Sequence[Any], kind: pa.DataType, path: str
) -> Iterator[tuple[str, str, pa.DataType]]:
    """Yield unknown fields: where, the name, of which struct; all values of a level at once."""
    present = [value for value in values if value is not None]
    if _t.is_map(kind):
        maps = (value.items() if isinstance(value, Mapping) else value for value in present)
        pairs = list(chain.from_iterable(maps))
        yield from _unknown_within([k for k, _ in pairs], kind.key_type, path)
        yield from _unknown_within([v for _, v in pairs], kind.item_type, path)
    elif _t.is_list(kind) and _holds(kind, _t.is_struct):
        yield from _unknown_within(list(chain.from_iterable(present)), kind.value_type, path)
    elif _t.is_struct(kind):
        if not set(map(type, present)) <= {dict}:
            present = [dict(value) for value in present]
        for name in set(chain.from_iterable(present)).difference(field.name for field in kind):
            yield path, str(name), kind
        for field in kind:
            if _holds(field.type, _t.is_struct):
                inner = [value.get(field.name) for value in present]
                yield from _unknown_within(inner, field.type, f"{path}.{field.name}")


def _types_within(values: Sequence[Any], kind: pa.DataType) -> set[type]:
    """Return the types of all values where the topic has whole numbers, a level at a time."""
    if not _holds(kind, _is_whole):
        return set()
    if not _t.is_nested(kind):
        return set(map(type, values))
    present = [value for value in values if value is not None]
    if _t.is_map(kind):
        maps = (value.items() if isinstance(value, Mapping) else value for value in present)
        pairs = list(chain.from_iterable(maps))
        inner = _types_within([k for k, _ in pairs], kind.key_type)
        return inner | _types_within([v for _, v in pairs], kind.item_type)
    if _t.is_list(kind):
        return _types_within(list(chain.from_iterable(present)), kind.value_type)
    parts = (_types_within([dict(value).get(f.name) for value in present], f.type) for f in kind)
    return set().union(*parts)


def _row_with(values: Sequence[Any], field: pa.Field, name: str) -> int:
    """Return the first row whose value has an unknown field; only to name it in an error."""
    for number, value in enumerate(values):
        if any(found == name for _, found, _ in _unknown_within([value], field.type, "")):
            return number
    return 0


def _refuse_first(values: Sequence[Any], field: pa.Field, topic: Topic) -> None:
    for number, value in enumerate(values):
        if _cut(value):
            raise _error(value, field, topic, number)
        if _t.is_date(field.type) and isinstance(value, datetime) and value.time() != value.time().min:
            raise _unfit(field, topic, f"got {value!r:.80}: the time of day would be cut off", number)


def _cut(value: Any) -> bool:
    """Tell whether a value has a part that a whole number has not."""
    return isinstance(value, _FRACTIONAL) and (value != value or value % 1 != 0)


def _cut_within(value: Any, kind: pa.DataType) -> bool:
    if value is None or not _holds(kind, _is_whole):
        return False
    if _t.is_map(kind):
        pairs = value.items() if isinstance(value, Mapping) else value
        return any(_cut_within(k, kind.key_type) or _cut_within(v, kind.item_type) for k, v in pairs)
    if _t.is_list(kind):
        return any(_cut_within(each, kind.value_type) for each in value)
    if _t.is_struct(kind):
        return any(_cut_within(dict(value).get(f.name), f.type) for f in kind)
    return _cut(value)


# Arrow columns


def _cast_plain(column: pa.Array, to: pa.DataType) -> pa.Array:
    have = column.type
    if _t.is_decimal(to) and _t.is_integer(have):
        # Straight to fewer digits than the integer type could need, Arrow refuses whatever the values.
        column = pc.cast(column, pa.decimal128(38, to.scale))
    made = pc.cast(column, to)
    if _t.is_floating(have) or _t.is_floating(to):  # where Arrow rounds; elsewhere it refuses by itself
        same = pc.equal(pc.cast(made, have, safe=False), column)
        if _t.is_floating(have) and _t.is_floating(to):
            same = pc.or_(same, pc.is_nan(column))
        if not pc.all(same, min_count=0).as_py():
            value = column[pc.index(same, False).as_py()].as_py()
            raise pa.ArrowInvalid(f"{value!r} would be changed to fit {to}")
    return made


def _cast_struct(column: pa.Array, to: pa.DataType, path: str, topic: Topic) -> pa.Array:
    parts = {field.name: part for field, part in zip(column.type, column.flatten(), strict=True)}
    if len(parts) < column.type.num_fields:
        raise pa.ArrowTypeError(f'"{path}" has a field twice')
    for name in parts:
        if to.get_field_index(name) < 0:
            raise _unknown_field(path, name, to, topic)
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
    column = _compact(column)
    pair = [to.key_field, to.item_field]
    made = [cast(column.keys, to.key_type, path, topic), cast(column.items, to.item_type, path, topic)]
    entries = pa.StructArray.from_arrays(made, fields=pair)
    return pa.Array.from_buffers(to, len(column), column.buffers()[:2], column.null_count, children=[entries])


def _compact(column: pa.Array) -> pa.Array:
    """Return a list or map whose children hold its own values only, from offset 0 on."""
    return column.take(pa.array(np.arange(len(column))))


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


def _problems(column: pa.Array, kind: pa.DataType, path: str, rows: Any) -> Iterator[tuple[str, int]]:
    """Yield what is wrong inside a nested column; ``rows`` has the row of each of its values."""
    if _t.is_struct(kind) and _holds_strict(kind):
        there = column.is_valid()
        for field, part in zip(kind, column.flatten(), strict=True):
            inner = f"{path}.{field.name}"
            if not field.nullable and part.null_count:
                missing = pc.index(pc.and_(there, part.is_null()), True).as_py()
                if missing >= 0:
                    yield f'field "{inner}" is NOT NULL and has no value', rows[missing]
            yield from _problems(part, field.type, inner, rows)
    elif _t.is_list(kind) and _holds_strict(kind):
        yield from _problems(column.flatten(), kind.value_type, path, rows[_parents(column)])
    elif _t.is_map(kind):
        column = _compact(column) if column.offset or column.null_count else column
        at = column.offsets.to_numpy()
        keys, items = column.keys.slice(at[0], at[-1] - at[0]), column.items.slice(at[0], at[-1] - at[0])
        rows = np.repeat(rows, np.diff(at))
        twice = None if _t.is_nested(kind.key_type) else _first_repeated(keys, np.diff(at))
        if twice is not None:
            yield f'map "{path}" has the key {keys[twice].as_py()!r:.60} twice', rows[twice]
        yield from _problems(keys, kind.key_type, path, rows)
        yield from _problems(items, kind.item_type, path, rows)


def _parents(column: pa.Array) -> Any:
    return pc.list_parent_indices(column).to_numpy(zero_copy_only=False)


def _first_repeated(keys: pa.Array, sizes: Any) -> int | None:
    """Return the place of a key that its map has had before."""
    if not len(keys) or sizes.max() < 2:
        return None
    code = keys.dictionary_encode().indices.to_numpy(zero_copy_only=False).astype(np.int64)
    marks = np.repeat(np.arange(len(sizes)), sizes) * (int(code.max()) + 1) + code
    first = np.unique(marks, return_index=True)[1]
    if len(first) == len(marks):
        return None
    return int(np.setdiff1d(np.arange(len(marks)), first, assume_unique=True)[0])


# Types


def _is_list(kind: pa.DataType) -> bool:
    return bool(
        _t.is_list(kind) or _t.is_large_list(kind) or _t.is_fixed_size_list(kind) or _t.is_list_view(kind)
    )


def _is_whole(kind: pa.DataType) -> bool:
    return bool(_t.is_integer(kind) or _t.is_temporal(kind))


def _holds(kind: pa.DataType, what: Callable[[pa.DataType], bool]) -> bool:
    """Tell whether a type is, or has somewhere inside, one of a kind; a map's pairs do not count."""
    if what(kind):
        return True
    if _t.is_map(kind):
        return _holds(kind.key_type, what) or _holds(kind.item_type, what)
    return any(_holds(kind.field(number).type, what) for number in range(kind.num_fields))


def _holds_strict(kind: pa.DataType) -> bool:
    """Tell whether a type has something inside that ``check_within`` has to look at."""
    if _t.is_struct(kind):
        return any(not field.nullable or _holds_strict(field.type) for field in kind)
    return bool(_t.is_map(kind) or (_t.is_list(kind) and _holds_strict(kind.value_type)))


def _unknown_field(path: str, name: str, kind: pa.DataType, topic: Topic, row: int | None = None) -> RowError:
    known = [field.name for field in kind]
    hint = nearest(name, known) or f'fields of "{path}": ' + ", ".join(known)
    return RowError(f'topic "{topic.name}" has no field "{path}.{name}"', hint=hint, row=row)


def _error(value: Any, field: pa.Field, topic: Topic, row: int) -> RowError:
    return _unfit(field, topic, f"got {value!r:.80}: a fraction would be cut off", row)


def _unfit(field: pa.Field, topic: Topic, reason: str, row: int) -> RowError:
    return RowError(
        f'row does not fit topic "{topic.name}": column "{field.name}" is {type_name(field)}',
        detail=reason,
        row=row,
    )
