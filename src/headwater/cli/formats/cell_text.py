"""The values of a column as text that people read, for tables.

Invariant: a text holds no control characters of its own record, so that stored data can neither
break a table's lines nor command a terminal. (CSV quotes them instead.)
"""

from __future__ import annotations

import re

import pyarrow as pa
import pyarrow.compute as pc

from headwater.values.csv_text import as_text

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
NULL = "null"


def cells(column: pa.Array, field: pa.Field) -> list[str]:
    """Return what a table shows, each on one line."""
    text = as_text(column, field)
    if pa.types.is_timestamp(column.type):
        text = pc.replace_substring_regex(text, r"\.000000(Z?)$", r"\1")
    return [NULL if value is None else _CONTROL.sub(_escape, value) for value in text.to_pylist()]


def _escape(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode()
