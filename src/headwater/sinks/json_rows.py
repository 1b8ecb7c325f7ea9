"""Rows that a target outside has as JSON text, each at a place that its key names, read back.

Invariant: a text that is no such row, or lies at another key's place, is told with its place, and is no row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from headwater.sinks.key_text import key_texts
from headwater.topic import Topic
from headwater.values import jsonl
from headwater.values.keyed import KeyedSchema

PLACE, TEXT = "place", "text"
_SHOWN = 200


def read_rows(
    places: Sequence[str], texts: Sequence[bytes], keyed: KeyedSchema
) -> tuple[pa.RecordBatch, list[Mapping[str, Any]]]:
    """Return the rows that texts are, and what is none of them.

    >>> from headwater.values.keyed import declare
    >>> keyed = declare("cache", "id BIGINT, name STRING", "id")
    >>> rows, others = read_rows(["1", "2"], [b'{"id":1,"name":"Ada"}', b'{"id":3}'], keyed)
    >>> rows.to_pylist(), others
    ([{'id': 1, 'name': 'Ada'}], [{'place': '2', 'text': '{"id":3}'}])
    """
    rows, errors = jsonl.decode(texts, Topic(keyed.what, (keyed.schema,)))
    wrong = {index for index, _ in errors}
    fitting = [index for index in range(len(texts)) if index not in wrong]
    found = key_texts(rows, keyed) if len(rows) else []
    right = np.array([places[index] == text for index, text in zip(fitting, found, strict=True)], bool)
    wrong |= {index for index, fits in zip(fitting, right.tolist(), strict=True) if not fits}
    others: list[Mapping[str, Any]] = [
        {PLACE: places[index], TEXT: _shown(texts[index])} for index in sorted(wrong)
    ]
    return rows.filter(pa.array(right)), others


def _shown(text: bytes) -> str:
    return text[:_SHOWN].decode(errors="replace")
