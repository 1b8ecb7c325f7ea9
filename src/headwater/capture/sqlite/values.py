"""Values of SQLite as Arrow, and those that a column's type cannot hold.

Invariant: a value arrives exactly as it is stored, or is null and told as one that does not fit; none is
turned into something near it. A REAL in a DECIMAL column is the shortest decimal number that stands for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa

from headwater.capture.change import SourceColumn

_t = pa.types
_FAILURES = (pa.ArrowException, OverflowError, ValueError, TypeError)
_SHOWN = 60


def decoded(values: Sequence[Any], column: SourceColumn) -> tuple[pa.Array, dict[int, str]]:
    """Return a column as Arrow, and why which of its values do not fit."""
    try:
        return _array(values, column.type), {}
    except _FAILURES:
        return _one_by_one(values, column)


def _one_by_one(values: Sequence[Any], column: SourceColumn) -> tuple[pa.Array, dict[int, str]]:
    """Return the same where some do not fit: only this way is it known which."""
    good, unfit = list(values), {}
    for number, value in enumerate(values):
        try:
            _array([value], column.type)
        except _FAILURES:
            good[number], unfit[number] = None, _reason(value, column)
    return _array(good, column.type), unfit


def _array(values: Sequence[Any], type: pa.DataType) -> pa.Array:
    """Return values as Arrow; Arrow itself would take bytes for text, and 1.5 for a whole number."""
    if not set(map(_class, values)) <= _classes(type):
        raise ValueError("a value of another kind")
    if _t.is_boolean(type):
        return _booleans(values)
    if _t.is_decimal(type):
        return pa.array([_exact(value) for value in values], type)
    return pa.array(values, type)


_class = type
_NONE = _class(None)


def _classes(type: pa.DataType) -> set[Any]:
    if _t.is_string(type):
        return {str, _NONE}
    if _t.is_binary(type):
        return {bytes, _NONE}
    return {int, _NONE} if _t.is_integer(type) or _t.is_boolean(type) else {int, float, _NONE}


def _booleans(values: Sequence[Any]) -> pa.Array:
    if not set(values) <= {0, 1, None}:
        raise ValueError("a number that is no truth value")
    return pa.array(values, pa.int8()).cast(pa.bool_())


def _exact(value: float | None) -> Decimal | None:
    return None if value is None else Decimal(repr(value))


def _reason(value: Any, column: SourceColumn) -> str:
    kind = {int: "the number", float: "the number", str: "the text", bytes: "the bytes"}[_class(value)]
    shown = value.hex() if isinstance(value, bytes) else ascii(value) if _is_broken(value) else str(value)
    shown = shown if len(shown) <= _SHOWN else shown[:_SHOWN] + "…"
    return f'column "{column.name}" ({column.sql_type or "no type"}) holds {kind} {shown}'


def _is_broken(value: Any) -> bool:
    return isinstance(value, str) and not value.isprintable()
