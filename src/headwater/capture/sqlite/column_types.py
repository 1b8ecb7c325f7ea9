"""The Arrow types of columns, by the types that SQLite tables declare.

SQLite keeps a type with each value and takes what a column declares as a preference. A column gets the Arrow
type that its declaration means; a value of another kind is told as one that does not fit (``values.py``).

====================================  ========================================================
INT in its name                       int64
CHAR, CLOB or TEXT in it              string
BLOB in it                            binary
REAL, FLOA or DOUB in it              float64
BOOLEAN, BOOL                         bool: 0 and 1
DECIMAL(p,s), NUMERIC(p,s)            decimal128(p, s)
DECIMAL, NUMERIC, NUMBER              float64
anything else, and none               string: dates and times are mostly kept as text
====================================  ========================================================

"""

from __future__ import annotations

import re

import pyarrow as pa

_BY_PART = (
    (("INT",), pa.int64()),
    (("CHAR", "CLOB", "TEXT"), pa.string()),
    (("BLOB",), pa.binary()),
    (("REAL", "FLOA", "DOUB"), pa.float64()),
)
"""SQLite's rules of affinity, in their order."""
_EXACT = re.compile(r"(?:DECIMAL|NUMERIC|NUMBER|DEC)\s*\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\)")
_BY_NAME = {
    "BOOLEAN": pa.bool_(), "BOOL": pa.bool_(),
    "DECIMAL": pa.float64(), "NUMERIC": pa.float64(), "NUMBER": pa.float64(), "DEC": pa.float64(),
}  # fmt: skip
_DIGITS = 38


def arrow_type(declared: str) -> pa.DataType:
    """Return the Arrow type for a declared one.

    >>> arrow_type("UNSIGNED BIG INT"), arrow_type("decimal(10, 2)"), arrow_type("DATETIME")
    (DataType(int64), Decimal128Type(decimal128(10, 2)), DataType(string))
    """
    name = declared.strip().upper()
    for parts, type in _BY_PART:
        if any(part in name for part in parts):
            return type
    return _decimal(name) or _BY_NAME.get(name, pa.string())


def _decimal(name: str) -> pa.DataType | None:
    found = _EXACT.fullmatch(name)
    if found is None:
        return None
    precision, scale = int(found[1]), int(found[2] or 0)
    fits = 0 < precision <= _DIGITS and scale <= precision
    return pa.decimal128(precision, scale) if fits else pa.string()
