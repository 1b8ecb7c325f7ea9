"""Appended ranges of a partition of the embedded log: from the headers of its frames alone.

What has been archived is told by its columns of metadata, a file at a time.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from headwater.log.appended_range import AppendedRange
from headwater.log.embedded.archive import Archived
from headwater.log.embedded.partition import frame, segment
from headwater.log.embedded.partition.frame import Header, Kind
from headwater.log.embedded.partition.head import Head
from headwater.log.embedded.partition.segment import Segment


def appended_ranges(
    directory: Path, number: int, published: Head, archived: Sequence[Archived], start: int
) -> Iterator[AppendedRange]:
    """Yield what lies from an offset on, oldest first."""
    at = start
    for each in archived:
        if each.base <= at < each.end:
            yield from _archived(each, number)
            at = each.end
    for found in _headers(directory, published, at):
        if found.kind == Kind.MARK and found.base >= start:
            yield AppendedRange(
                number, found.base, found.base, found.producer, found.received, found.newest, True
            )
        elif found.rows and found.last >= at:
            newest = None if found.newest == frame.NO_TIME else found.newest
            yield AppendedRange(number, at, found.last + 1, found.producer, found.received, newest)
            at = found.last + 1
    if at < published.end:  # compaction has left nothing there, or reading it will tell of damage
        yield AppendedRange(number, at, published.end, "", published.received, None)


def _headers(directory: Path, published: Head, offset: int) -> Iterator[Header]:
    segments = segment.listing(directory)
    covering = [s for s in segments if s.base <= offset][-1:]
    for each in covering + [s for s in segments if s.base > offset]:
        if each.base <= published.segment:
            yield from _segment(each, published, offset)


def _segment(each: Segment, published: Head, offset: int) -> Iterator[Header]:
    with open(each.path, "rb") as file:
        fd = file.fileno()
        size = published.size if each.base == published.segment else os.fstat(fd).st_size
        for _, found in segment.walk(fd, segment.locate(fd, each, size, offset=offset), size):
            if isinstance(found, Header):
                yield found


def _archived(each: Archived, number: int) -> Iterator[AppendedRange]:
    """Yield one appended range per producer; together they cover the file, for its rows are not cut apart."""
    columns = pq.read_table(each.path, columns=["_producer", "_occurred", "_received"])
    times = columns.set_column(1, "_occurred", columns["_occurred"].cast(pa.int64()))
    times = times.set_column(2, "_received", columns["_received"].cast(pa.int64()))
    told = times.group_by("_producer").aggregate([("_occurred", "max"), ("_received", "max")]).to_pylist()
    first = pc.min(times["_received"]).as_py()
    for place, row in enumerate(told):
        base, producer = each.base if place == 0 else each.end, row["_producer"] or ""
        newest = row["_occurred_max"]
        yield AppendedRange(number, base, each.end, producer, row["_received_max"], newest, first=first)
