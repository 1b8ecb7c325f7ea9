"""Conditions over Arrow, with the three values of SQL: true, false, and null for what is not known.

Comparisons are Spark's: NaN equals NaN and comes after all numbers, -0.0 equals 0.0, an integer is compared
with a fraction as a fraction, a text with a time as the time that it is. What Spark would cast in a way that
can fail, a text to a number, is refused. Invariant: a condition over a null is null, but for ``<=>`` and
``IS NULL``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc

from headwater.errors import UsageError
from headwater.expressions import functions
from headwater.schema import TIMESTAMP

_t = pa.types
Pair = tuple[pa.Array, pa.Array]


def both(left: pa.Array, right: pa.Array) -> pa.Array:
    """Return ``AND``: false where one is, whatever the other."""
    return pc.and_kleene(_truth(left, "AND"), _truth(right, "AND"))


def either(left: pa.Array, right: pa.Array) -> pa.Array:
    """Return ``OR``: true where one is, whatever the other."""
    return pc.or_kleene(_truth(left, "OR"), _truth(right, "OR"))


def negated(condition: pa.Array) -> pa.Array:
    """Return ``NOT``: null where the condition is."""
    return pc.invert(_truth(condition, "NOT"))


def any_of(found: Sequence[pa.Array]) -> pa.Array:
    """Return whether any of some conditions holds."""
    return reduce(either, found)


def compare(sign: str, left: pa.Array, right: pa.Array) -> pa.Array:
    """Return for each row whether a comparison holds."""
    left, right = _comparable(sign, left, right)
    if sign == "<=>":
        return _null_safe(left, right)
    return _COMPARE[sign](left, right)


def like(texts: pa.Array, pattern: object) -> pa.Array:
    """Return which texts have the form of a pattern: ``%`` for any text, ``_`` for any character."""
    if not isinstance(pattern, str):
        raise UsageError("LIKE needs a text", detail=f"it has {pattern!r}")
    form = _like_regex(pattern)
    return pc.match_substring_regex(functions.texts(texts, "LIKE"), form)


def case(branches: Sequence[tuple[pa.Array, pa.Array]], other: pa.Array) -> pa.Array:
    """Return the value of the first condition that holds, else the other."""
    kind = _common([*(value for _, value in branches), other])
    result = functions.cast(other, kind) if other.type != kind else other
    for condition, value in reversed(branches):
        chosen = pc.fill_null(_truth(condition, "WHEN"), False)
        result = pc.if_else(chosen, functions.cast(value, kind), result)
    return result


def _truth(array: pa.Array, what: str) -> pa.Array:
    if _t.is_null(array.type):
        return array.cast(pa.bool_())
    if not _t.is_boolean(array.type):
        raise functions.mismatch(what, "a condition", array.type)
    return array


def _common(arrays: Sequence[pa.Array]) -> pa.DataType:
    kinds = list(dict.fromkeys(array.type for array in arrays if not _t.is_null(array.type)))
    if not kinds:
        return pa.null()
    if len(kinds) > 1 and not all(_t.is_integer(kind) or _t.is_floating(kind) for kind in kinds):
        raise UsageError(
            "the branches of CASE have several types",
            detail=", ".join(map(str, kinds)),
            hint="CAST them to one",
        )
    if len(kinds) == 1:
        return kinds[0]
    return pa.int64() if all(map(_t.is_integer, kinds)) else pa.float64()


def _comparable(sign: str, left: pa.Array, right: pa.Array) -> Pair:
    """Return two arrays of one type that has an order, or refuse them."""
    a, b = left.type, right.type
    if _t.is_null(a) or _t.is_null(b):
        kind = b if _t.is_null(a) else a
        return left.cast(kind), right.cast(kind)
    if a == b and _is_ordered(a):
        return left, right
    if _is_number(a) and _is_number(b):
        return _as_numbers(left, right)
    if (_is_moment(a) and (_is_moment(b) or _t.is_string(b))) or (_t.is_string(a) and _is_moment(b)):
        return functions.cast(left, TIMESTAMP), functions.cast(right, TIMESTAMP)
    raise UsageError(f'"{sign}" cannot compare {a} with {b}', hint="CAST one of them")


def _is_number(kind: pa.DataType) -> bool:
    return bool(_t.is_integer(kind) or _t.is_floating(kind) or _t.is_decimal(kind))


def _is_moment(kind: pa.DataType) -> bool:
    return bool(_t.is_timestamp(kind) or _t.is_date(kind))


def _is_ordered(kind: pa.DataType) -> bool:
    plain = _t.is_string(kind) or _t.is_binary(kind) or _t.is_boolean(kind)
    return _is_number(kind) or _is_moment(kind) or bool(plain)


def _as_numbers(left: pa.Array, right: pa.Array) -> Pair:
    kinds = (left.type, right.type)
    if any(map(_t.is_floating, kinds)):
        return left.cast(pa.float64(), safe=False), right.cast(pa.float64(), safe=False)
    if all(map(_t.is_integer, kinds)):
        return left.cast(pa.int64()), right.cast(pa.int64())
    scale = max(kind.scale for kind in kinds if _t.is_decimal(kind))
    exact = pa.decimal256(76, scale)  # holds every decimal of 38 digits, whatever its scale
    return left.cast(exact), right.cast(exact)


def _equal(left: pa.Array, right: pa.Array) -> pa.Array:
    same = pc.equal(left, right)
    return pc.or_(same, pc.and_(pc.is_nan(left), pc.is_nan(right))) if _t.is_floating(left.type) else same


def _less(left: pa.Array, right: pa.Array) -> pa.Array:
    less = pc.less(left, right)
    if not _t.is_floating(left.type):
        return less
    return pc.or_(less, pc.and_(pc.invert(pc.is_nan(left)), pc.is_nan(right)))


def _null_safe(left: pa.Array, right: pa.Array) -> pa.Array:
    nulls = pc.and_(pc.is_null(left), pc.is_null(right))
    return pc.or_(nulls, pc.fill_null(_equal(left, right), False))


_COMPARE: dict[str, Callable[[pa.Array, pa.Array], pa.Array]] = {
    "=": _equal,
    "==": _equal,
    "<>": lambda left, right: pc.invert(_equal(left, right)),
    "!=": lambda left, right: pc.invert(_equal(left, right)),
    "<": _less,
    ">": lambda left, right: _less(right, left),
    "<=": lambda left, right: pc.invert(_less(right, left)),
    ">=": lambda left, right: pc.invert(_less(left, right)),
}


def _like_regex(pattern: str) -> str:
    """Return the regular expression of a pattern; a backslash makes the next character mean itself."""
    parts = re.findall(r"\\.|.", pattern, re.S)
    special = {"%": "(?s:.*)", "_": "(?s:.)"}
    return "^" + "".join(special.get(part) or re.escape(part[-1]) for part in parts) + "$"
