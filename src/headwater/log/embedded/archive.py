"""The archive: segments that retention has moved out, as Parquet, from which reads go on.

A file holds a segment's records with all their metadata, in a directory that bears the topic's
identity: logs may share an archive, and a topic never meets the files of another. Parquet's own checksums
cover the data of a page and neither its header nor the footer: one flipped bit in a header hides a page
without an error. So the file's name has them, ``base-end-footer-pages.parquet``: the footer's is checked when
statistics are asked for, both when records are read. Invariant: a segment is deleted from the log only after
its file is whole and durable here.
"""

from __future__ import annotations

import os
import re
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from headwater import durable, record
from headwater.errors import DamagedLog
from headwater.log.embedded.catalog import StoredTopic
from headwater.schema import evolve
from headwater.topic import Topic

_NAME = re.compile(r"(\d{20})-(\d{20})-([0-9a-f]{8})-([0-9a-f]{8})\.parquet")
_ROWS = 1 << 16
_CHUNK = 1 << 20


class Archived(NamedTuple):
    """One archived segment."""

    base: int
    end: int
    path: Path
    footer: int
    """The checksum of the footer."""
    pages: int
    """The checksum of all that stands before the footer."""


def topic_directory(root: Path, stored: StoredTopic) -> Path | None:
    """Return the directory of a topic's archive; a relative archive is below the log's directory."""
    archive = stored.topic.archive
    return None if archive is None else root / archive / f"{stored.topic.name}@{stored.id}"


def partition_directory(root: Path, stored: StoredTopic, number: int) -> Path | None:
    """Return the directory of a partition's archive."""
    topic = topic_directory(root, stored)
    return None if topic is None else topic / str(number)


def listing(directory: Path | None) -> list[Archived]:
    """Return the archived segments, oldest first."""
    if directory is None or not directory.is_dir():
        return []
    names = (_NAME.fullmatch(name) for name in os.listdir(directory))
    return sorted(
        Archived(int(m[1]), int(m[2]), directory / m[0], int(m[3], 16), int(m[4], 16)) for m in names if m
    )


def covers(archived: Sequence[Archived], start: int, stop: int) -> bool:
    """Tell whether the archive has all offsets from ``start`` up to ``stop``."""
    for each in archived:
        if each.base <= start < each.end:
            start = each.end
    return start >= stop


def store(directory: Path, base: int, end: int, batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> None:
    """Write a segment's records, whole or not at all."""
    durable.make(directory)
    draft = directory / f"{base:020d}-{end:020d}.tmp"
    with pq.ParquetWriter(draft, schema, compression="zstd") as writer:
        for batch in batches:
            writer.write_batch(batch)
    durable.sync(draft)
    path = directory / f"{draft.stem}-{_footer(draft):08x}-{_pages(draft):08x}.parquet"
    os.replace(draft, path)
    for left in directory.glob(f"{draft.stem}-*.parquet"):  # of a process killed before its unlink
        if left != path:
            left.unlink()
    durable.sync(directory)


def read(
    archived: Archived, topic: Topic, bounds: tuple[int, int], meta: bool
) -> Iterator[tuple[pa.RecordBatch, int]]:
    """Read an archived segment's records between two offsets; each batch with the offset after it."""
    schema = record.read_schema(topic.schema, topic.compacted, meta)
    for batch in batches(archived, bounds[0]):
        offset = batch.column("_offset")
        wanted = batch.filter(pc.and_(pc.greater_equal(offset, bounds[0]), pc.less(offset, bounds[1])))
        if len(wanted):
            yield evolve(wanted, schema), wanted.column("_offset")[-1].as_py() + 1


def batches(
    archived: Archived, start: int = 0, columns: Sequence[str] | None = None
) -> Iterator[pa.RecordBatch]:
    """Read a whole archived segment, its checksums compared first; ``start`` is what is wanted of it."""
    reached = max(start, archived.base)
    try:
        _check_footer(archived)
        if _pages(archived.path) != archived.pages:
            raise pa.ArrowInvalid("the pages have another checksum than the file's name")
        with pq.ParquetFile(archived.path) as file:
            for batch in file.iter_batches(batch_size=_ROWS, columns=columns):
                yield batch
                reached = max(reached, batch.column("_offset")[-1].as_py() + 1)
    except (pa.ArrowException, OSError) as error:
        raise damaged(archived, reached, str(error)) from None


def received(archived: Archived) -> tuple[int, int] | None:
    """Return when the first and the last record of an archived segment were received, if it has any."""
    try:
        _check_footer(archived)
        metadata = pq.read_metadata(archived.path)
    except (pa.ArrowException, OSError) as error:
        raise damaged(archived, archived.base, str(error)) from None
    paths = [metadata.schema.column(i).path for i in range(metadata.num_columns)]  # nested ones have dots
    column = paths.index("_received")
    groups = [metadata.row_group(i).column(column) for i in range(metadata.num_row_groups)]
    ranges = [(group.statistics.min_raw, group.statistics.max_raw) for group in groups]
    return (min(r[0] for r in ranges), max(r[1] for r in ranges)) if ranges else None


def offset_at(archived: Archived, time: int) -> int:
    """Return the offset of the first record of an archived segment received at a time or later."""
    for batch in batches(archived, columns=["_received", "_offset"]):
        later = batch.filter(pc.greater_equal(batch.column("_received").cast(pa.int64()), time))
        if len(later):
            return int(later.column("_offset")[0].as_py())
    return archived.end


def received_at(archived: Archived, offset: int) -> int | None:
    """Return when the record at an offset, or the next one after it, was received."""
    for batch in batches(archived, offset, ["_received", "_offset"]):
        later = batch.filter(pc.greater_equal(batch.column("_offset"), offset))
        if len(later):
            return int(later.column("_received").cast(pa.int64())[0].as_py())
    return None


def damaged(archived: Archived, start: int, reason: str) -> DamagedLog:
    """Return the error for an archived file that cannot be read from an offset on."""
    return DamagedLog(
        f'log is damaged: archived file "{archived.path}" cannot be read',
        detail=f"offsets {start} to {archived.end - 1} cannot be read: {reason}",
        hint=f"restore the file from a copy, or go on from offset {archived.end}",
        resume=archived.end,
    )


def _check_footer(archived: Archived) -> None:
    if _footer(archived.path) != archived.footer:
        raise pa.ArrowInvalid("the footer has another checksum than the file's name")


def _footer(path: Path) -> int:
    """Return the checksum of a file's footer, with its length and the mark at the end."""
    with open(path, "rb") as file:
        file.seek(_footer_start(file))
        return zlib.crc32(file.read())


def _pages(path: Path) -> int:
    """Return the checksum of all that stands before a file's footer."""
    checksum = 0
    with open(path, "rb") as file:
        left = _footer_start(file)
        file.seek(0)
        while left and (data := file.read(min(left, _CHUNK))):
            checksum, left = zlib.crc32(data, checksum), left - len(data)
    return checksum


def _footer_start(file: BinaryIO) -> int:
    size = file.seek(-8, os.SEEK_END) + 8
    return max(0, size - 8 - int.from_bytes(file.read(4), "little"))
