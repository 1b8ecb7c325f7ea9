"""When two rows are equal: the one definition, for ``verify`` and for tests, of views and of streams.

- A null equals a null, and nothing else; the null of free JSON is a value, and no null of a column.
- Numbers are equal by their value: 0.0 and -0.0, decimals of any scale. One that is not a number (NaN) equals
  another, as it does where Spark groups.
- Times are equal if they are the same instant, text and bytes if all of it is the same.
- Lists are equal element by element in their order, structs field by field, maps in any order.
- Free JSON is equal by what it says: objects in any order, of a name that is there twice the last; numbers
  exactly by their value, so 1 and 1.0 and 10e-1 are one, and 1 is not true. What is no JSON is equal as text.

Keys are equal in the same way where rows are grouped and routed to buckets (``operators/groups.py``,
``exchange/routing.py``), and SQLite stores no sign of zero. One thing is stricter on purpose, and is called
identical, not equal: whether an operator need not emit a row again (``operators/table_changes.py``). There
zero has a sign, so that what is read downstream is always the newest value.

Invariant: equal values have equal forms, and equal hashes; a form depends on the value and its column alone.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Mapping
from decimal import Decimal
from typing import Any

import pyarrow as pa

from headwater.schema import is_variant

_t = pa.types


def comparable(row: Mapping[str, Any], fields: Iterable[pa.Field]) -> tuple[Hashable, ...]:
    """Return the values of a row in some columns as something to compare and count by."""
    return tuple(comparable_value(row[field.name], field) for field in fields)


def comparable_value(value: Any, field: pa.Field) -> Hashable:
    """Return one value of a column as something to compare by."""
    if value is None:
        return None
    return _parsed(value) if is_variant(field) else _plain(value, field.type)


def _plain(value: Any, kind: pa.DataType) -> Hashable:
    if _t.is_map(kind):
        pairs = value.items() if isinstance(value, Mapping) else value
        return frozenset(
            (comparable_value(k, kind.key_field), comparable_value(v, kind.item_field)) for k, v in pairs
        )
    if _t.is_struct(kind):
        return comparable(value, kind)
    if _t.is_list(kind) or _t.is_large_list(kind) or _t.is_fixed_size_list(kind):
        return tuple(comparable_value(each, kind.value_field) for each in value)
    return _number(value)


def _parsed(text: str) -> Hashable:
    try:
        return _meaning(json.loads(text, parse_float=Decimal, parse_constant=_refused))
    except (
        ValueError,
        RecursionError,
    ):  # no JSON, or deeper than anybody reads it: compared as it is written
        return ("text", text)


def _refused(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def _meaning(parsed: Any) -> Hashable:
    """Return what free JSON says; what Python would take for something else has its kind beside it."""
    if parsed is None:
        return ("null",)
    if isinstance(parsed, dict):
        return ("object", frozenset((key, _meaning(each)) for key, each in parsed.items()))
    if isinstance(parsed, list):
        return ("list", tuple(map(_meaning, parsed)))
    return ("bool", parsed) if isinstance(parsed, bool) else _number(parsed)


def _number(value: Any) -> Hashable:
    form: Hashable = ("NaN",) if value != value else value  # a number that is not even itself
    return form
