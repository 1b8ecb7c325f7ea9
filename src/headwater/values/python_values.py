"""Python values as a topic's types: which are taken, and that none is changed.

Arrow would cut 1.5 to 1, a time's nanoseconds and its zone, and take bytes for text, without a word.
What is listed here is taken, everything else refused. Each of the types listed for a column that is
not nested cannot change, so a copy of a row need not copy them: see ``sent_rows``. Invariant: a value is
kept exactly, or refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from headwater.values import floats
from headwater.values.columns import Form, Misfit

_WHOLE = (int, np.integer)
_FRACTIONAL = (float, np.floating, Decimal)
_TRUTH = (bool, np.bool_)
_NOTHING = type(None)
_t = pa.types


def _leaf(values: list[Any], kind: pa.DataType) -> pa.Array:
    types = set(map(type, values))
    types.discard(_NOTHING)
    for test, convert in _CONVERT:
        if test(kind):
            return convert(values, kind, types)
    raise AssertionError(f"no conversion for {kind}")


def _strings(values: list[Any], kind: pa.DataType, types: set[type]) -> pa.Array:
    _only(types, str)
    return pa.array(values, kind)


def _binaries(values: list[Any], kind: pa.DataType, types: set[type]) -> pa.Array:
    _only(types, bytes, bytearray, memoryview)
    return pa.array(values, kind)


def _booleans(values: list[Any], kind: pa.DataType, types: set[type]) -> pa.Array:
    _only(types, *_TRUTH)
    return pa.array(values, kind)


def _integers(values: list[Any], kind: pa.DataType, types: set[type]) -> pa.Array:
    _only(types, *_WHOLE, *_FRACTIONAL, but=_TRUTH)
    return pa.array(_without_fractions(values, types), kind)


def _floats(values: list[Any], kind: pa.DataType, types: set[type]) -> pa.Array:
    _only(types, *_WHOLE, float, np.floating, but=_TRUTH)
    if any(issubclass(each, _WHOLE) for each in types):
        values = [floats.double(int(v)) if isinstance(v, _WHOLE) else v for v in values]
    if any(issubclass(each, np.longdouble) for each in types):
        raise Misfit("it has more digits than a double")
    doubles = pa.array(values, pa.float64())
    return floats.single(doubles) if kind == pa.float32() else doubles


def _decimals(values: list[Any], kind: pa.DataType, types: set[type]) -> pa.Array:
    _only(types, *_WHOLE, *_FRACTIONAL, but=_TRUTH)
    if not types <= {Decimal, int}:
        values = [v if v is None or isinstance(v, Decimal) else Decimal(str(v)) for v in values]
    made = pa.array(values, kind)
    if made.to_pylist() != values:  # Arrow takes 6.05E-19 for nought
        raise Misfit("digits would be cut off")
    return made


def _dates(values: list[Any], kind: pa.DataType, types: set[type]) -> pa.Array:
    _only(types, date, *_WHOLE, *_FRACTIONAL, but=_TRUTH)
    if any(issubclass(each, datetime) for each in types):
        for value in values:
            if isinstance(value, datetime) and (value != value or value.time() != value.time().min):
                raise Misfit("the time of day would be cut off")
    return pa.array(_without_fractions(values, types), kind)


def _timestamps(values: list[Any], kind: pa.TimestampType, types: set[type]) -> pa.Array:
    _only(types, datetime, np.datetime64, *_WHOLE, *_FRACTIONAL, but=_TRUTH)
    if not types <= {datetime, int}:
        values = [_instant(value) for value in values]
    if kind.tz is None and types - {int}:
        for value in values:
            if isinstance(value, datetime) and value.tzinfo not in (None, UTC) and value.utcoffset():
                raise Misfit("it has a time zone, and the column has none")
    return pa.array(_without_fractions(values, types), kind)


def _instant(value: Any) -> Any:
    """Return numpy's times as Python's; refuse those, and pandas', that are none or too fine."""
    if not isinstance(value, datetime | np.datetime64):
        return value
    if value != value:
        raise Misfit("it is no time; leave the column out, or pass None")
    if getattr(value, "nanosecond", 0):
        raise Misfit("its nanoseconds would be cut off")
    return _from_numpy(value) if isinstance(value, np.datetime64) else value


def _from_numpy(value: np.datetime64) -> Any:
    """Return a time of numpy's, which is in UTC, in microseconds: Arrow itself takes only some units."""
    exact = value.astype("datetime64[us]")
    if exact.astype(value.dtype) != value:
        raise Misfit("its nanoseconds would be cut off, or it is further away than microseconds can count")
    return exact.item()


def _without_fractions(values: list[Any], types: set[type]) -> list[Any]:
    """Return fractional numbers that are whole as integers."""
    if not any(issubclass(each, _FRACTIONAL) for each in types):
        return values
    return [_integer(value) if isinstance(value, _FRACTIONAL) else value for value in values]


def _integer(value: Any) -> int:
    if value != value or value % 1 != 0:
        raise Misfit("a fraction would be cut off")
    return int(value)


def _only(types: set[type], *known: type, but: tuple[type, ...] = ()) -> None:
    for each in types:
        if not issubclass(each, known) or issubclass(each, but):
            raise Misfit(f"a {each.__name__} is not taken for it")


def _struct(value: Any) -> Mapping[str, Any]:
    return value if type(value) is dict else dict(value)


def _pairs(value: Any, _: pa.DataType) -> Sequence[tuple[Any, Any]]:
    return list(value.items() if isinstance(value, Mapping) else value)


def _items(value: Any) -> Sequence[Any]:
    if isinstance(value, list | tuple):
        return value
    if isinstance(value, np.ndarray):
        return list(value)
    raise Misfit(f"a {type(value).__name__} is not taken for it")


_CONVERT: list[tuple[Callable[[pa.DataType], bool], Callable[[list[Any], Any, set[type]], pa.Array]]] = [
    (_t.is_string, _strings),
    (_t.is_integer, _integers),
    (_t.is_floating, _floats),
    (_t.is_boolean, _booleans),
    (_t.is_timestamp, _timestamps),
    (_t.is_date, _dates),
    (_t.is_decimal, _decimals),
    (_t.is_binary, _binaries),
]

FORM = Form(_leaf, _struct, _pairs, _items)
"""How Python writes values."""
