"""A few rows of plain values, converted with as few calls as can be: for those who append one at a time.

``rows`` converts many rows in bulk, and its checks cost much more than a single row. Here only values are
taken of which nothing has to be checked: texts, whole numbers, truths and times in UTC, each in a column of
its type. Invariant: what is returned is what ``rows.from_rows`` returns; where that is not sure, nothing is.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

import pyarrow as pa

from headwater import record
from headwater.schema import is_variant
from headwater.topic import Topic

_NOTHING = type(None)
_KNOWN = 1000
MOST = 64
"""Of more rows than this the conversion in bulk is no slower."""


class _Columns(NamedTuple):
    """How the columns of a topic are taken."""

    names: frozenset[str]
    plain: list[tuple[str, type, bool]]
    """Of each column its name, the type of its values, and whether it may have none."""
    struct: pa.StructType


_known: dict[tuple[str, int, tuple[str, ...]], _Columns | None] = {}


def from_plain_rows(
    rows: Sequence[Any], topic: Topic, headers: pa.Array | None = None
) -> pa.RecordBatch | None:
    """Return rows as a batch, or None where they have to be looked at more closely."""
    columns = _columns(topic)
    if columns is None or len(rows) > MOST:
        return None
    most = record.MAX_BYTES - (0 if headers is None else headers.nbytes)
    for row in rows:
        if not 0 <= _largest(row, columns) <= most:
            return None
    try:  # all columns by one call: each costs more than its value
        return pa.RecordBatch.from_struct_array(pa.array(rows, columns.struct))
    except (pa.ArrowException, OverflowError, UnicodeError):
        return None


def _largest(row: Any, columns: _Columns) -> int:
    """Return how many bytes a row has at the most, or -1 if it has values that are not plain."""
    if type(row) is not dict or not row.keys() <= columns.names:
        return -1
    size = 32 * len(columns.plain)
    for name, plain, nullable in columns.plain:
        value: Any = row.get(name)
        kind = type(value)
        if kind is str and plain is str:
            size += 4 * len(value)
        elif kind is _NOTHING:
            if not nullable:
                return -1
        elif kind is not plain or (kind is datetime and value.tzinfo is not UTC):
            return -1
    return size


def _columns(topic: Topic) -> _Columns | None:
    """Return how a topic's columns are taken, worked out once for each of its schemas."""
    key = (topic.id, len(topic.schemas), topic.key)
    if key not in _known or not topic.id:  # not by the topic itself, whose hash costs as much as a row
        if len(_known) > _KNOWN:
            _known.clear()
        _known[key] = _worked_out(topic)
    return _known[key]


def _worked_out(topic: Topic) -> _Columns | None:
    """Return how a topic's columns are taken; None if one has no plain values."""
    every = [(field, _plain_type(field)) for field in topic.schema]
    plain = [(f.name, kind, f.nullable and f.name not in topic.key) for f, kind in every if kind is not None]
    if len(plain) < len(every):
        return None
    return _Columns(frozenset(topic.schema.names), plain, pa.struct(list(topic.schema)))


def _plain_type(field: pa.Field) -> type | None:
    if is_variant(field):
        return None
    if pa.types.is_string(field.type):
        return str
    if pa.types.is_integer(field.type):
        return int
    if pa.types.is_boolean(field.type):
        return bool
    return datetime if pa.types.is_timestamp(field.type) and field.type.tz is not None else None
