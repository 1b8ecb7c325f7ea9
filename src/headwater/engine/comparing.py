"""Rows of two results made comparable, whatever store one of them has been in.

Invariant: two values are equal here if Spark and every store take them for the same: free JSON by
what it says and not how it is written, maps in any order, and a number that is not one like another.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import orjson
import pyarrow as pa

from headwater.schema import is_variant

_t = pa.types


def frozen(row: Mapping[str, Any], schema: pa.Schema) -> tuple[Hashable, ...]:
    """Return a row as something to compare and count by."""
    return tuple(value(row[field.name], field) for field in schema)


def value(given: Any, field: pa.Field) -> Hashable:
    """Return one value of a column as something to compare by."""
    if is_variant(field):
        return _parsed(given)
    return _plain(given, field.type)


def _plain(given: Any, kind: pa.DataType) -> Hashable:
    if given is None:
        return None
    if _t.is_map(kind):
        return frozenset((_plain(k, kind.key_type), _plain(v, kind.item_type)) for k, v in given)
    if _t.is_struct(kind):
        return tuple(value(given[field.name], field) for field in kind)
    if _t.is_list(kind) or _t.is_large_list(kind):
        return tuple(value(each, kind.value_field) for each in given)
    return _number(given)


def _parsed(text: str | None) -> Hashable:
    try:
        return None if text is None else _said(orjson.loads(text))
    except orjson.JSONDecodeError:  # compared as it is written
        return text


def _said(json: Any) -> Hashable:
    if isinstance(json, dict):
        return frozenset((key, _said(each)) for key, each in json.items())
    if isinstance(json, list):
        return tuple(map(_said, json))
    return ("bool", json) if isinstance(json, bool) else _number(json)  # True is 1 to Python, not in JSON


def _number(given: Any) -> Hashable:
    known: Hashable = "NaN" if given != given else given  # a number that is not even itself
    return known
