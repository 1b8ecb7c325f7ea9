"""Python rows whose values would be changed: Arrow cuts 1.5 to 1, and drops a field, without a word.

Invariant: after ``check`` every value is the one that was handed over, in the topic's type.
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


def _types(rows: Sequence[Mapping[str, Any]], name: str) -> set[type]:
    try:
        return set(map(type, map(itemgetter(name), rows)))
    except KeyError:  # some rows lack the column
        return {type(row.get(name)) for row in rows}


def _check_nested(rows: Sequence[Mapping[str, Any]], field: pa.Field, topic: Topic) -> None:
    values = [row.get(field.name) for row in rows]
    if _holds(field.type, _t.is_struct):
        for path, name, kind in _unknown_within(values, field.type, field.name):
            raise unknown_field(path, name, kind, topic, _row_with(values, field, name))
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


def _is_whole(kind: pa.DataType) -> bool:
    return bool(_t.is_integer(kind) or _t.is_temporal(kind))


def _holds(kind: pa.DataType, what: Callable[[pa.DataType], bool]) -> bool:
    """Tell whether a type is, or has somewhere inside, one of a kind; a map's pairs do not count."""
    if what(kind):
        return True
    if _t.is_map(kind):
        return _holds(kind.key_type, what) or _holds(kind.item_type, what)
    return any(_holds(kind.field(number).type, what) for number in range(kind.num_fields))


def unknown_field(path: str, name: str, kind: pa.DataType, topic: Topic, row: int | None = None) -> RowError:
    """Return the error for a field that a struct of the topic has not."""
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
