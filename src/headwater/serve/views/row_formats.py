"""Rows of views in the form that a client asks for: JSON, lines of it, CSV, or an Arrow stream.

Invariant: a value is written as ``headwater view`` writes it, whatever its type.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from headwater.serve.http.answer import JSON
from headwater.serve.http.problem import HttpProblem
from headwater.topic import Topic
from headwater.values import jsonl
from headwater.values.csv_text import to_csv

NDJSON, CSV, ARROW = "application/x-ndjson", "text/csv", "application/vnd.apache.arrow.stream"
FORMATS = (JSON, NDJSON, CSV, ARROW)
_MEANS = {
    "*/*": JSON, "application/*": JSON, "text/*": CSV, "application/jsonl": NDJSON,
    **{each: each for each in FORMATS},
}  # fmt: skip


def accepted(header: str) -> str:
    """Return the format that an ``Accept`` header likes best; JSON if it says nothing."""
    if not header or header == "*/*" or header == JSON:
        return JSON
    wishes = []
    for at, part in enumerate(header.split(",")):
        kind, *settings = (text.strip().lower() for text in part.split(";"))
        if kind in _MEANS:
            wishes.append((-_quality(settings), at, _MEANS[kind]))
    liked = [wish for wish in sorted(wishes) if wish[0] < 0]
    if not liked:
        raise HttpProblem(406, "rows cannot be sent in that form", hint="accept " + ", ".join(FORMATS))
    return liked[0][2]


def lines(batch: pa.RecordBatch) -> list[bytes]:
    """Return each row as a JSON object, without the columns that are null."""
    return jsonl.encode(batch, Topic("view", (batch.schema,)))


def encoded(batches: Sequence[pa.RecordBatch], schema: pa.Schema, form: str) -> bytes:
    """Return rows in a format that is not JSON."""
    if form == NDJSON:
        return b"".join(line + b"\n" for batch in batches for line in lines(batch))
    if form == CSV:
        rest = [to_csv(batch, header=False) for batch in batches]
        return b"".join([to_csv(pa.RecordBatch.from_pylist([], schema=schema)), *rest])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as stream:
        for batch in batches:
            stream.write_batch(batch)
    return bytes(sink.getvalue().to_pybytes())


def _quality(settings: Sequence[str]) -> float:
    for each in settings:
        name, _, value = each.partition("=")
        if name.strip() == "q":
            try:
                return float(value)
            except ValueError:
                return 0.0
    return 1.0
