"""Refusing fractions where whole numbers belong: Arrow would cut 1.5 to 1 without a word.

Invariant: after ``check``, converting the rows changes no number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa

from headwater.errors import RowError
from headwater.log.topic import Topic
from headwater.schema import type_name

_FRACTIONAL = (float, Decimal, np.floating)


def check(rows: Sequence[Mapping[str, Any]], topic: Topic) -> None:
    """Refuse a fraction in a column of whole numbers, dates or times."""
    for field in topic.schema:
        if pa.types.is_nested(field.type):
            _check_nested(rows, field, topic)
        # The set of types settles it for a whole chunk, at 40 ns a row.
        elif _is_whole(field.type) and any(issubclass(t, _FRACTIONAL) for t in _types(rows, field.name)):
            _refuse_first([row.get(field.name) for row in rows], field, topic)


def _types(rows: Sequence[Mapping[str, Any]], name: str) -> set[type]:
    try:
        return set(map(type, map(itemgetter(name), rows)))
    except KeyError:  # some rows lack the column
        return {type(row.get(name)) for row in rows}


def _check_nested(rows: Sequence[Mapping[str, Any]], field: pa.Field, topic: Topic) -> None:
    if _holds_whole(field.type):
        # One by one: nested Python values have no columns to look at.
        for number, row in enumerate(rows):
            if _cut_within(row.get(field.name), field.type):
                raise _error(row.get(field.name), field, topic, number)


def _refuse_first(values: Sequence[Any], field: pa.Field, topic: Topic) -> None:
    for number, value in enumerate(values):
        if _cut(value):
            raise _error(value, field, topic, number)


def _cut(value: Any) -> bool:
    """Tell whether a value has a part that a whole number has not."""
    return isinstance(value, _FRACTIONAL) and (value != value or value % 1 != 0)


def _cut_within(value: Any, kind: pa.DataType) -> bool:
    if value is None or not _holds_whole(kind):
        return False
    if pa.types.is_map(kind):
        pairs = value.items() if isinstance(value, Mapping) else value
        return any(_cut_within(k, kind.key_type) or _cut_within(v, kind.item_type) for k, v in pairs)
    if pa.types.is_list(kind):
        return any(_cut_within(each, kind.value_type) for each in value)
    if pa.types.is_struct(kind):
        return isinstance(value, Mapping) and any(_cut_within(value.get(f.name), f.type) for f in kind)
    return _cut(value)


def _is_whole(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_temporal(kind))


def _holds_whole(kind: pa.DataType) -> bool:
    if not pa.types.is_nested(kind):
        return _is_whole(kind)
    return any(_holds_whole(kind.field(number).type) for number in range(kind.num_fields))


def _error(value: Any, field: pa.Field, topic: Topic, row: int) -> RowError:
    return RowError(
        f'row does not fit topic "{topic.name}": column "{field.name}" is {type_name(field)}',
        detail=f"got {value!r:.80}: a fraction would be cut off",
        row=row,
    )
