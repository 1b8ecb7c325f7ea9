"""Which Arrow type holds the values of a type of PostgreSQL, and what makes them from cells.

What has no type of ours stays text, exactly as PostgreSQL prints it: times, intervals, ranges, addresses, and
numbers without a declared precision, which may be of any size.

Invariant: a type always becomes the same Arrow type, whichever form the server sends.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from headwater.capture.postgres import binary_columns, lists, text_columns
from headwater.capture.postgres.binary_columns import Decode, Decoded
from headwater.capture.postgres.tuples import TEXT, Cells

_WIDEST: Final = 38


@dataclass(frozen=True)
class Decoder:
    """What makes a column of an Arrow type from cells."""

    type: pa.DataType
    text: Decode
    binary: Decode | None = None
    """None where only the text form is read."""

    def decode(self, cells: Cells) -> Decoded:
        """Return a column, and the values of rows that it cannot hold."""
        if self.binary is None or (cells.kind == TEXT).any():
            return self.text(cells)
        return self.binary(cells)


AS_TEXT: Final = Decoder(pa.string(), binary_columns.texts)
"""What keeps a value as it is printed."""


def _numbers(code: str, kind: pa.DataType) -> Decoder:
    return Decoder(kind, text_columns.numbers(kind), binary_columns.numbers(code, kind))


def _timestamps(kind: pa.TimestampType) -> Decoder:
    return Decoder(kind, text_columns.timestamps(kind), binary_columns.timestamps(kind))


_TEXTS: Final = Decoder(pa.string(), binary_columns.texts, binary_columns.texts)
_SIMPLE: Final[dict[str, Decoder]] = {
    "int2": _numbers("i2", pa.int16()),
    "int4": _numbers("i4", pa.int32()),
    "int8": _numbers("i8", pa.int64()),
    "oid": _numbers("u4", pa.int64()),
    "float4": _numbers("f4", pa.float32()),
    "float8": _numbers("f8", pa.float64()),
    "bool": Decoder(pa.bool_(), text_columns.booleans, binary_columns.booleans),
    "text": _TEXTS,
    "varchar": _TEXTS,
    "bpchar": _TEXTS,
    "name": _TEXTS,
    "json": _TEXTS,
    "jsonb": Decoder(pa.string(), binary_columns.texts, binary_columns.jsonb),
    "bytea": Decoder(pa.binary(), text_columns.raw, binary_columns.raw),
    "uuid": Decoder(pa.string(), binary_columns.texts, binary_columns.uuids),
    "date": Decoder(pa.date32(), text_columns.dates, binary_columns.dates),
    "timestamp": _timestamps(pa.timestamp("us")),
    "timestamptz": _timestamps(pa.timestamp("us", "UTC")),
}


@dataclass(frozen=True)
class SqlType:
    """A type as the catalog of a database has it."""

    name: str
    kind: str = "b"
    """``b`` a plain type, ``e`` an enumeration, ``d`` a domain; others are text."""
    parent: int = 0
    """The type that a domain is made of."""
    modifier: int = -1
    """What a domain says of its parent, such as a precision."""
    element: int = 0
    """The type of the elements, of an array."""
    built_in: bool = True


Find = Callable[[int], SqlType | None]
"""Returns a type by its number, or None if it is no longer there."""


def decoder(number: int, modifier: int, find: Find) -> Decoder:
    """Return what decodes the columns of a type."""
    found = find(number)
    if found is None:
        return AS_TEXT
    if found.kind == "d":
        return decoder(found.parent, found.modifier if found.modifier >= 0 else modifier, find)
    if found.element:
        return _list(decoder(found.element, modifier, find))
    if found.kind == "e":
        return _TEXTS
    if not found.built_in:
        return AS_TEXT
    return _numeric(modifier) if found.name == "numeric" else _SIMPLE.get(found.name, AS_TEXT)


def _list(element: Decoder) -> Decoder:
    if element is AS_TEXT or pa.types.is_list(element.type):
        return AS_TEXT
    binary = lists.from_binary(element.binary) if element.binary is not None else None
    return Decoder(pa.list_(element.type), lists.from_text(element.text), binary)


def _numeric(modifier: int) -> Decoder:
    if modifier < 4:
        return AS_TEXT
    declared = modifier - 4
    precision, scale = declared >> 16, ((declared & 0x7FF) ^ 1024) - 1024
    # PostgreSQL rounds to tens and hundreds where the scale is negative, and may have more digits behind the
    # point than it keeps; a decimal has at least as many as it holds.
    precision, scale = (precision - scale, 0) if scale < 0 else (max(precision, scale), scale)
    if precision > _WIDEST:
        return AS_TEXT
    kind = pa.decimal128(precision, scale)
    return Decoder(kind, text_columns.decimals(kind), binary_columns.decimals(kind))
