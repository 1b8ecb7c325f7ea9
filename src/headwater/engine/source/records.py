"""The records of a partition as nodes see them: a deletion of a table tells when it happened, too.

What is deleted has nothing but its key, so the time is what its producer said of it (``occurred``), or
that of its receipt. Invariant: every way of reading goes through here, so all see the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from headwater.log import Log, Position
from headwater.record import DELETED


class Span(NamedTuple):
    """Records of one partition of a topic, from an offset to another."""

    topic: str
    id: str | None
    """The topic's identity: one that was made again under its name is not read in its place."""
    partition: int
    start: int
    end: int


def records(log: Log, span: Span, *, meta: bool = False) -> Iterator[pa.RecordBatch]:
    """Yield the records of a span."""
    declared = log.topic(span.topic)
    timed = declared.event_time if declared.compacted else None
    first, last = (Position(span.topic, {span.partition: at}, span.id) for at in (span.start, span.end))
    for batch in log.read(span.topic, span.partition, first, last, meta=meta or timed is not None):
        told = batch if timed is None else _timed(batch, timed)
        yield told if meta or timed is None else told.select(declared.read_schema.names)


def _timed(batch: pa.RecordBatch, column: str) -> pa.RecordBatch:
    if not pc.any(batch[DELETED]).as_py():
        return batch
    said = pc.coalesce(batch["_occurred"], batch["_received"]).cast(batch[column].type)
    filled = pc.if_else(pc.fill_null(batch[DELETED], False), said, batch[column])
    return batch.set_column(batch.schema.get_field_index(column), batch.schema.field(column), filled)
