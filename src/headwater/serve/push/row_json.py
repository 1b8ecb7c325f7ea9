"""Rows as JSON texts, by columns: the form that the log and the command line have.

Invariant: a value is written as ``values.jsonl`` writes it; columns that are null are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from headwater.topic import Topic
from headwater.values import jsonl


def encode_rows(rows: pa.RecordBatch) -> list[bytes]:
    """Return each row as a JSON object."""
    return jsonl.encode(rows, Topic("rows", (rows.schema,)))


def encode_values(rows: pa.RecordBatch) -> list[bytes]:
    """Return the values of each row as a JSON array.

    >>> encode_values(pa.RecordBatch.from_pylist([{"shop": "a", "day": 1}]))
    [b'["a",1]']
    """
    texts = [pc.fill_null(jsonl.text(column), "null") for column in rows.columns]
    joined = pc.binary_join_element_wise(*texts, ",") if texts else pa.array([""] * len(rows))
    return [b"[%s]" % text for text in joined.cast(pa.binary()).to_pylist()]


def key_rows(keys: Sequence[tuple[Any, ...]], fields: Sequence[pa.Field]) -> pa.RecordBatch:
    """Return keys as rows of their columns."""
    columns = zip(*keys, strict=True)
    arrays = [pa.array(values, field.type) for values, field in zip(columns, fields, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, names=[field.name for field in fields])
