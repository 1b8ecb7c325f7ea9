"""Lines become rows of a topic: JSON into its columns, or text into one of them.

Invariant: every line is a row, or is named with the reason why it is none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pyarrow as pa

from headwater.errors import RowError, UsageError, nearest
from headwater.ingest.valid_text import is_text
from headwater.log import Topic
from headwater.values import jsonl
from headwater.values.bulk import Rows

Decoder = Callable[[Sequence[bytes]], Rows]


def json_decoder(topic: Topic) -> Decoder:
    """Return what reads lines as JSON objects, whose members are columns of a topic and no others."""
    declared = replace(topic, schemas=(topic.read_schema,))  # with `_deleted`, if it is compacted
    return lambda lines: jsonl.decode(lines, declared, strict=True)


def text_decoder(topic: Topic, column: str) -> Decoder:
    """Return what puts lines into one STRING column of a topic, and null into the others."""
    names = topic.schema.names
    if column not in names or not pa.types.is_string(topic.schema.field(column).type):
        hint = nearest(column, names) or f"its columns: {', '.join(names)}"
        raise UsageError(f'topic "{topic.name}" has no STRING column "{column}"', hint=hint)
    return lambda lines: _text_rows(lines, topic.schema, column)


def _text_rows(lines: Sequence[bytes], schema: pa.Schema, column: str) -> Rows:
    texts, bad = decode_texts(lines)
    columns = [texts if field.name == column else pa.nulls(len(texts), field.type) for field in schema]
    return pa.RecordBatch.from_arrays(columns, names=schema.names), bad


def decode_texts(lines: Sequence[bytes]) -> tuple[pa.Array, list[tuple[int, RowError]]]:
    """Return the lines that are UTF-8, and the number and error of each that is not."""
    try:
        return pa.array(lines, pa.binary()).cast(pa.string()), []
    except pa.ArrowInvalid:
        bad = [(number, _not_text(line)) for number, line in enumerate(lines) if not is_text(line)]
        odd = {number for number, _ in bad}
        good = [line for number, line in enumerate(lines) if number not in odd]
        return pa.array(good, pa.binary()).cast(pa.string()), bad


def _not_text(line: bytes) -> RowError:
    return RowError("a line is no UTF-8 text", detail=f"it begins with {line[:20]!r}")
