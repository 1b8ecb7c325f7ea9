"""The records of a partition as nodes see them: a deletion of a table tells when it happened, too.

What is deleted has nothing but its key, so the time is what its producer said of it (``occurred``), or
that of its receipt. Records that were read ahead into local files are taken from there, and the log is not
even opened. Invariant: every way of reading goes through here, so all see the same.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from headwater.engine.source.log_options import opened
from headwater.log import Log, Position, prefetched
from headwater.log.prefetched import Span
from headwater.record import DELETED


def read(
    options: Mapping[str, str], span: Span, *, meta: bool = False, log: Log | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield the records of a span, with the columns of its topic, or all metadata too."""
    local = prefetched.read(Path(options["prefetch"]), span) if "prefetch" in options else None
    if local is not None:
        for batch in local:
            yield _as_read(batch, meta)
        return
    with nullcontext(log) if log is not None else opened(options) as reading:
        yield from records(reading, span, meta=meta)


def records(log: Log, span: Span, *, meta: bool = False) -> Iterator[pa.RecordBatch]:
    """Yield the records of a span from the log itself."""
    declared = log.topic(span.topic)
    timed = declared.event_time if declared.compacted else None
    first, last = (Position(span.topic, {span.partition: at}, span.id) for at in (span.start, span.end))
    for batch in log.read(span.topic, span.partition, first, last, meta=meta or timed is not None):
        filled = batch if timed is None else _timed(batch, timed)
        yield filled if meta or timed is None else filled.select(declared.read_schema.names)


def _as_read(batch: pa.RecordBatch, meta: bool) -> pa.RecordBatch:
    """Return a batch of a prefetched file as the log would have given it."""
    notes = batch.schema.metadata or {}
    filled = _timed(batch, notes[b"event_time"].decode()) if b"event_time" in notes else batch
    return filled if meta or not notes else filled.select(json.loads(notes[b"columns"]))


def _timed(batch: pa.RecordBatch, column: str) -> pa.RecordBatch:
    if not pc.any(batch[DELETED]).as_py():
        return batch
    said = pc.coalesce(batch["_occurred"], batch["_received"]).cast(batch[column].type)
    filled = pc.if_else(pc.fill_null(batch[DELETED], False), said, batch[column])
    return batch.set_column(batch.schema.get_field_index(column), batch.schema.field(column), filled)
