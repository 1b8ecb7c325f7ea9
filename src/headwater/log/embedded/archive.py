"""The archive: segments that retention has moved out, as Parquet, from which reads go on.

A file holds a segment's records with all their metadata and is named ``base-end.parquet``.
Invariant: a segment is deleted from the log only after its file is whole and durable here.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from headwater import clock
from headwater.log import record
from headwater.log.embedded.partition import sync_directory
from headwater.log.topic import Topic
from headwater.schema import evolve


class Archived(NamedTuple):
    """One archived segment."""

    base: int
    end: int
    path: Path


def directory(root: Path, topic: Topic, number: int) -> Path | None:
    """Return where a partition's archive lies; a relative archive is below the log's directory."""
    return None if topic.archive is None else root / topic.archive / topic.name / str(number)


def listing(place: Path | None) -> list[Archived]:
    """Return the archived segments, oldest first."""
    if place is None or not place.is_dir():
        return []
    found = []
    for path in place.glob("*.parquet"):
        base, _, end = path.stem.partition("-")
        found.append(Archived(int(base), int(end), path))
    return sorted(found)


def store(place: Path, base: int, end: int, batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> None:
    """Write a segment's records, whole or not at all."""
    place.mkdir(parents=True, exist_ok=True)
    path = place / f"{base:020d}-{end:020d}.parquet"
    draft = path.with_suffix(".tmp")
    with pq.ParquetWriter(draft, schema, compression="zstd") as writer:
        for batch in batches:
            writer.write_batch(batch)
    with open(draft, "rb+") as file:
        os.fsync(file.fileno())
    os.replace(draft, path)
    sync_directory(place)


def read(
    archived: Archived, topic: Topic, bounds: tuple[int, int], meta: bool
) -> Iterator[tuple[pa.RecordBatch, int]]:
    """Read an archived segment's records between two offsets; each batch with the offset after it."""
    schema = record.read_schema(topic.schema, topic.compacted, meta)
    with pq.ParquetFile(archived.path) as file:
        for batch in file.iter_batches(batch_size=1 << 16):
            offset = batch.column("_offset")
            wanted = batch.filter(pc.and_(pc.greater_equal(offset, bounds[0]), pc.less(offset, bounds[1])))
            if len(wanted):
                yield evolve(wanted, schema), wanted.column("_offset")[-1].as_py() + 1


def received(archived: Archived) -> tuple[int, int]:
    """Return when the first and the last record of an archived segment were received."""
    metadata = pq.read_metadata(archived.path)
    column = next(i for i in range(metadata.num_columns) if metadata.schema.column(i).name == "_received")
    ranges = [metadata.row_group(i).column(column).statistics for i in range(metadata.num_row_groups)]
    return min(clock.micros(r.min) for r in ranges), max(clock.micros(r.max) for r in ranges)


def offset_at(archived: Archived, time: int) -> int:
    """Return the offset of the first record of an archived segment received at a time or later."""
    table = pq.read_table(archived.path, columns=["_received", "_offset"])
    later = table.filter(pc.greater_equal(table.column("_received").cast(pa.int64()), time))
    return int(pc.min(later.column("_offset")).as_py())


def received_at(archived: Archived, offset: int) -> int | None:
    """Return when the record at an offset, or the next one after it, was received."""
    table = pq.read_table(archived.path, columns=["_received", "_offset"])
    later = table.filter(pc.greater_equal(table.column("_offset"), offset))
    return clock.micros(later.column("_received")[0].as_py()) if len(later) else None
