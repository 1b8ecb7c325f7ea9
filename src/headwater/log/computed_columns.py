"""A topic read as somebody declares it: with columns that are computed, and the times and producers of them.

Invariant: what is planned over and what is read are computed by the same code from the same records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater import computed
from headwater.errors import RowError
from headwater.expressions import functions
from headwater.log.appended_range import AppendedRange
from headwater.topic import Topic

TOGETHER = 100_000
"""Offsets whose records are read at once to learn their times."""


def complete(batch: pa.RecordBatch, topic: Topic, keys: Callable[[], pa.Array]) -> pa.RecordBatch:
    """Return a batch that has all metadata with what is computed, and what that says of time and producer."""
    batch = computed.extended(batch, topic.computed, keys)
    if topic.event_time in topic.computed_names:
        told = pc.coalesce(batch.column("_occurred"), batch.column(topic.event_time))
        batch = _replaced(batch, "_occurred", told)
    if topic.producer is not None:
        batch = _replaced(batch, "_producer", functions.cast(batch.column(topic.producer), pa.string()))
    return batch


def selected(batch: pa.RecordBatch, topic: Topic, meta: bool) -> pa.RecordBatch:
    """Return a complete batch with the columns that were asked for."""
    schema = topic.meta_schema if meta else topic.read_schema
    return pa.RecordBatch.from_arrays([batch.column(name) for name in schema.names], schema=schema)


def uncomputed(batch: pa.RecordBatch, topic: Topic) -> list[tuple[int, RowError]]:
    """Return the rows that have all that their event time is computed from, and yet none: with the reason."""
    time = next((each for each in topic.computed if each.name == topic.event_time), None)
    if time is None or not batch.column(time.name).null_count:
        return []
    names = [name for name in sorted(time.columns) if name in batch.schema.names]
    given = [pc.is_valid(batch.column(name)) for name in names]
    missing = reduce(pc.and_, given, pc.is_null(batch.column(time.name)))
    what = f'event time "{time.text}" of topic "{topic.name}" cannot be computed'
    return [
        (row, RowError(what, detail=", ".join(f"{name} is {batch.column(name)[row]}" for name in names)))
        for row in np.flatnonzero(missing.to_numpy(zero_copy_only=False)).tolist()
        if names
    ]


def ranges(
    appended: Iterable[AppendedRange], read: Callable[[int, int], Iterator[pa.RecordBatch]]
) -> Iterator[AppendedRange]:
    """Yield appended ranges with the producers and times that their records tell, once they are read."""
    waiting: list[AppendedRange] = []
    for each in appended:
        waiting.append(each)
        if each.end - waiting[0].base >= TOGETHER:
            yield from _told(waiting, read)
            waiting = []
    yield from _told(waiting, read)


def _told(
    waiting: Sequence[AppendedRange], read: Callable[[int, int], Iterator[pa.RecordBatch]]
) -> Iterator[AppendedRange]:
    if not waiting:
        return
    names = ["_offset", "_occurred", "_producer"]
    batches = [batch.select(names) for batch in read(waiting[0].base, waiting[-1].end)]
    rows = pa.Table.from_batches(batches) if batches else None
    offsets = np.array([]) if rows is None else rows.column("_offset").to_numpy()
    for each in waiting:
        first, last = np.searchsorted(offsets, [each.base, each.end])
        if each.mark or rows is None or first == last:
            yield each
        else:
            yield from _by_producer(each, rows.slice(first, last - first))


def _by_producer(appended: AppendedRange, rows: pa.Table) -> Iterator[AppendedRange]:
    """Yield a range for each producer; the first covers the offsets, which all of them share."""
    times = rows.set_column(1, "_occurred", rows.column("_occurred").cast(pa.int64()))
    base = appended.base
    grouped = times.group_by("_producer", use_threads=False).aggregate([("_occurred", "max")])
    for row in grouped.to_pylist():
        yield replace(appended, base=base, producer=row["_producer"] or "", newest=row["_occurred_max"])
        base = appended.end


def _replaced(batch: pa.RecordBatch, name: str, column: pa.Array) -> pa.RecordBatch:
    at = batch.schema.get_field_index(name)
    return batch.set_column(at, batch.schema.field(at), column)
