"""Text and bytes: the whole value is the topic's one column.

Invariant: not a byte is changed; text is UTF-8.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from headwater.topic import Topic
from headwater.values import bulk
from headwater.values.bulk import Rows
from headwater.values.jsonl_columns import not_utf8


def decode(values: Sequence[bytes], topic: Topic) -> Rows:
    """Return each value as a row of one STRING or BINARY column, and those that are no text."""
    return bulk.decoded(len(values), topic.schema, lambda start, end: _batch(values[start:end], topic))


def _batch(values: Sequence[bytes], topic: Topic) -> pa.RecordBatch:
    column = pa.array(values, pa.binary())
    if pa.types.is_string(topic.schema.field(0).type):
        try:
            column = column.cast(pa.string())
        except pa.ArrowInvalid:
            raise next(filter(None, (not_utf8(value, topic) for value in values))) from None
    return pa.RecordBatch.from_arrays([column], schema=topic.schema)
