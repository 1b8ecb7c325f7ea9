"""Rows as CSV: what the command line prints and the server sends.

Invariant: what CSV has no form for is the text that ``jsonl`` has for it: JSON for nested values, base64 for
binary ones.
"""

from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pv

from headwater.schema import is_variant
from headwater.values import jsonl


def to_csv(batch: pa.RecordBatch, header: bool = True) -> bytes:
    """Return rows as CSV, with or without the names of their columns first."""
    columns = [
        column if is_plain(field) else as_text(column, field)
        for column, field in zip(batch.columns, batch.schema, strict=True)
    ]
    text = io.BytesIO()
    plain = pa.RecordBatch.from_arrays(columns, batch.schema.names)
    pv.write_csv(plain, text, pv.WriteOptions(include_header=header))
    return text.getvalue()


def as_text(column: pa.Array, field: pa.Field) -> pa.Array:
    """Return text for any column: nested values as JSON, binary as base64, null as null."""
    if is_variant(field) or pa.types.is_string(column.type):
        return column
    text = jsonl.text(column)
    return text if pa.types.is_nested(column.type) else pc.utf8_trim(text, '"')


def is_plain(field: pa.Field) -> bool:
    """Tell whether CSV has a form of its own for the column."""
    return not (pa.types.is_nested(field.type) or pa.types.is_binary(field.type) or is_variant(field))
