"""Values of a key as a command line or a URL has them, texts, made into what the view's columns hold.

Invariant: a text that is not of its column's type is told by the column's name, with how to write it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import orjson
import pyarrow as pa

from headwater.durations import parse_instant
from headwater.errors import HeadwaterError, UsageError
from headwater.schema import type_name
from headwater.values import jsonl_columns
from headwater.values.columns import Misfit
from headwater.values.jsonl_columns import how_to_write
from headwater.values.keyed import KeyedSchema

_t = pa.types
_SHORT = re.compile("0|-?[1-9][0-9]{0,17}")
"""Numbers that fit into 64 bits, as JSON writes them."""
_WRONG = (Misfit, HeadwaterError, orjson.JSONDecodeError, pa.ArrowException, ValueError, OverflowError)


def key(texts: Sequence[str], keyed: KeyedSchema) -> tuple[Any, ...]:
    """Return the values of a whole key."""
    if len(texts) != len(keyed.key):
        raise UsageError(f"key of {keyed.what} is ({', '.join(keyed.key)})", detail=_got(texts))
    return prefix(texts, keyed)


def prefix(texts: Sequence[str], keyed: KeyedSchema) -> tuple[Any, ...]:
    """Return the values of the leading columns of a key."""
    if len(texts) > len(keyed.key):
        raise UsageError(f"key of {keyed.what} is ({', '.join(keyed.key)})", detail=_got(texts))
    return tuple(bound(text, keyed, at) for at, text in enumerate(texts))


def bound(text: str | None, keyed: KeyedSchema, at: int) -> Any:
    """Return a value of the column of the key with a number; None where there is no text."""
    if text is None:
        return None
    if at >= len(keyed.key):
        raise UsageError(
            f"a scan of {keyed.what} by its whole key has no range",
            hint="leave out --from and --to; in a URL, start and end",
        )
    return value(text, keyed.schema.field(keyed.key[at]))


def value(text: str, field: pa.Field) -> Any:
    """Return a text as a value of a column.

    >>> value("12", pa.field("id", pa.int64())), value("12", pa.field("name", pa.string()))
    (12, '12')
    """
    try:
        return _value(text, field.type)
    except _WRONG:
        hint = (how_to_write(field) or "").removesuffix(", without quotes")
        raise UsageError(f'column "{field.name}" is {type_name(field)}, not "{text}"', hint=hint) from None


def _value(text: str, kind: pa.DataType) -> Any:
    if _t.is_timestamp(kind):
        at = parse_instant(text)
        return at if kind.tz is not None else at.replace(tzinfo=None)
    if _t.is_string(kind) and text.isascii():  # as it is, without the way through Arrow
        return text
    plain = _t.is_integer(kind) or _t.is_boolean(kind)
    if kind == pa.int64() and _SHORT.fullmatch(text):
        return int(text)
    return jsonl_columns.column([orjson.loads(text) if plain else text], kind)[0].as_py()


def _got(texts: Sequence[str]) -> str:
    return f"got ({', '.join(texts)})"
