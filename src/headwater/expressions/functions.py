"""The functions of expressions, each from Arrow arrays to an Arrow array, as Spark names them.

Invariant: what cannot be computed for a row is null for that row, and no row is changed because of another.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.errors import UsageError
from headwater.expressions import time_text
from headwater.schema import TIMESTAMP

EARLIEST, LATEST = -62_135_596_800_000_000, 253_402_300_799_999_999
"""The first and the last microsecond of the years 1 to 9999, since 1970."""


class Function(NamedTuple):
    """What a call does, and how many arguments it takes."""

    compute: Callable[[Sequence[pa.Array]], pa.Array]
    least: int
    most: int


def integers(array: pa.Array, what: str) -> pa.Array:
    """Return integers as 64 bits of them, or refuse another type."""
    if not pa.types.is_integer(array.type) and not pa.types.is_null(array.type):
        raise mismatch(what, "an integer", array.type)
    return array.cast(pa.int64())


def texts(array: pa.Array, what: str) -> pa.Array:
    """Return text, or refuse another type."""
    if not (pa.types.is_string(array.type) or pa.types.is_null(array.type)):
        raise mismatch(what, "text", array.type)
    return array.cast(pa.string())


def mismatch(what: str, wanted: str, kind: pa.DataType) -> UsageError:
    """Return the error of a type that a function does not take."""
    hint = "write CAST(… AS STRING) for the text in bytes" if pa.types.is_binary(kind) else None
    return UsageError(f"{what} takes {wanted}, not {kind}", hint=hint)


def timestamps(micros: np.ndarray, valid: np.ndarray) -> pa.Array:
    """Return times of microseconds since 1970; null outside of the years 1 to 9999."""
    fits = valid & (micros >= EARLIEST) & (micros <= LATEST)
    return pa.array(np.where(fits, micros, 0).astype(np.int64), mask=~fits).cast(TIMESTAMP)


def scaled(array: pa.Array, factor: int, what: str) -> pa.Array:
    """Return the times of numbers that count so many microseconds each."""
    valid = pc.is_valid(array).to_numpy(zero_copy_only=False)
    if pa.types.is_floating(array.type) and factor == 1_000_000:
        numbers = pc.fill_null(array.cast(pa.float64()), 0).to_numpy(zero_copy_only=False)
        near = np.abs(numbers) <= LATEST / 1e6 + 1  # and so is none that is no number
        return timestamps(np.trunc(np.where(near, numbers, 0) * 1e6).astype(np.int64), valid & near)
    numbers = pc.fill_null(integers(array, what), 0).to_numpy(zero_copy_only=False)
    fits = np.abs(numbers.astype(np.float64)) <= 2 * LATEST / factor
    return timestamps(np.where(fits, numbers, 0) * factor, valid & fits)


def _to_timestamp(arguments: Sequence[pa.Array]) -> pa.Array:
    array = arguments[0]
    if pa.types.is_timestamp(array.type):
        return array
    pattern = None
    if len(arguments) == 2:
        pattern = arguments[1][0].as_py() if len(arguments[1]) else None
    return time_text.times(texts(array, "to_timestamp"), pattern)


def _coalesce(arguments: Sequence[pa.Array]) -> pa.Array:
    kinds = {each.type for each in arguments if not pa.types.is_null(each.type)}
    if len(kinds) > 1:
        raise UsageError(f"coalesce takes arguments of one type, not {' and '.join(sorted(map(str, kinds)))}")
    return pc.coalesce(*(each.cast(next(iter(kinds), each.type)) for each in arguments))


def _concat(arguments: Sequence[pa.Array]) -> pa.Array:
    return pc.binary_join_element_wise(*(texts(each, "concat") for each in arguments), "")


def _text(name: str, compute: Callable[[pa.Array], pa.Array]) -> Function:
    return Function(lambda arguments: compute(texts(arguments[0], name)), 1, 1)


def _epoch(name: str, factor: int) -> Function:
    return Function(lambda arguments: scaled(arguments[0], factor, name), 1, 1)


FUNCTIONS = {
    "timestamp_seconds": _epoch("timestamp_seconds", 1_000_000),
    "timestamp_millis": _epoch("timestamp_millis", 1000),
    "timestamp_micros": _epoch("timestamp_micros", 1),
    "to_timestamp": Function(_to_timestamp, 1, 2),
    "coalesce": Function(_coalesce, 1, 99),
    "concat": Function(_concat, 1, 99),
    "lower": _text("lower", pc.utf8_lower),
    "upper": _text("upper", pc.utf8_upper),
    "trim": _text("trim", lambda array: pc.utf8_trim(array, " ")),
}
"""By their names in Spark SQL."""


def cast(array: pa.Array, to: pa.DataType) -> pa.Array:
    """Return an array as another type, as Spark's CAST; null where a text is none of it."""
    have = array.type
    if have == to:
        return array
    if pa.types.is_null(have):
        return array.cast(to)
    if pa.types.is_timestamp(to):
        return _as_time(array)
    if pa.types.is_string(to):
        return _as_text(array)
    if pa.types.is_int64(to):
        return _as_integer(array)
    if pa.types.is_float64(to):
        return _as_double(array)
    raise UsageError(f"CAST to {to} is not known here", hint="known are TIMESTAMP, STRING, BIGINT and DOUBLE")


def _as_time(array: pa.Array) -> pa.Array:
    if pa.types.is_string(array.type):
        return time_text.times(array)
    if pa.types.is_date(array.type) or pa.types.is_timestamp(array.type):
        return array.cast(TIMESTAMP)
    return scaled(array, 1_000_000, "CAST AS TIMESTAMP")


def _as_text(array: pa.Array) -> pa.Array:
    if pa.types.is_binary(array.type):
        return _decoded(array)
    if pa.types.is_integer(array.type) or pa.types.is_boolean(array.type):
        return array.cast(pa.string())
    raise mismatch("CAST AS STRING", "an integer, a boolean or bytes", array.type)


def _decoded(array: pa.Array) -> pa.Array:
    try:
        return array.cast(pa.string())
    except pa.ArrowInvalid:  # some are no UTF-8: those are null
        return pa.array([_utf8(each) for each in array.to_pylist()], pa.string())


def _utf8(value: bytes | None) -> str | None:
    try:
        return None if value is None else value.decode()
    except UnicodeDecodeError:
        return None


def _as_integer(array: pa.Array) -> pa.Array:
    if pa.types.is_string(array.type):
        trimmed = pc.utf8_trim_whitespace(array)
        fits = pc.match_substring_regex(trimmed, r"^[+-]?\d{1,18}$")
        return pc.if_else(fits, pc.utf8_ltrim(trimmed, "+"), pa.scalar(None, pa.string())).cast(pa.int64())
    if pa.types.is_timestamp(array.type):
        return pc.floor(pc.divide(array.cast(pa.int64()).cast(pa.float64()), 1e6)).cast(pa.int64())
    return integers(array, "CAST AS BIGINT")


def _as_double(array: pa.Array) -> pa.Array:
    if pa.types.is_string(array.type):
        trimmed = pc.utf8_trim_whitespace(array)
        fits = pc.match_substring_regex(trimmed, r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?$")
        return pc.if_else(fits, pc.utf8_ltrim(trimmed, "+"), pa.scalar(None, pa.string())).cast(pa.float64())
    if pa.types.is_integer(array.type) or pa.types.is_floating(array.type):
        return array.cast(pa.float64(), safe=False)
    raise mismatch("CAST AS DOUBLE", "a number or text", array.type)


def arithmetic(sign: str, left: pa.Array, right: pa.Array) -> pa.Array:
    """Return the sum, difference, product or quotient of numbers; null where it is none of 64 bits."""
    for each in (left, right):
        if not (pa.types.is_integer(each.type) or pa.types.is_floating(each.type)):
            raise mismatch(f'"{sign}"', "numbers", each.type)
    if sign == "/":
        return _quotient(left.cast(pa.float64(), safe=False), right.cast(pa.float64(), safe=False))
    kind = pa.int64() if pa.types.is_integer(left.type) and pa.types.is_integer(right.type) else pa.float64()
    a, b = left.cast(kind, safe=False), right.cast(kind, safe=False)
    try:
        return {"+": pc.add_checked, "-": pc.subtract_checked, "*": pc.multiply_checked}[sign](a, b)
    except pa.ArrowInvalid:  # a row overflows: exactly those are null
        return _slow(sign, a, b)


def _quotient(left: pa.Array, right: pa.Array) -> pa.Array:
    return pc.divide(left, pc.if_else(pc.equal(right, 0.0), pa.scalar(None, pa.float64()), right))


def _slow(sign: str, left: pa.Array, right: pa.Array) -> pa.Array:
    compute = {"+": int.__add__, "-": int.__sub__, "*": int.__mul__}[sign]
    pairs = zip(left.to_pylist(), right.to_pylist(), strict=True)
    results = [None if a is None or b is None else compute(a, b) for a, b in pairs]
    return pa.array([r if r is not None and -(2**63) <= r < 2**63 else None for r in results], pa.int64())
