"""Appended ranges of a partition of the embedded log: from the headers of its frames alone.

Of what has been archived, the columns of metadata are read, a file at a time.
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
            yield from _archived_ranges(each, number)
            at = each.end
    for header in _headers(directory, published, at):
        if header.kind == Kind.MARK and header.base >= start:
            yield AppendedRange(
                number, header.base, header.base, header.producer, header.received, header.newest, True
            )
        elif header.rows and header.last >= at:
            newest = None if header.newest == frame.NO_TIME else header.newest
            yield AppendedRange(number, at, header.last + 1, header.producer, header.received, newest)
            at = header.last + 1
    if at < published.end:  # compaction has left nothing there, or reading it will tell of damage
        yield AppendedRange(number, at, published.end, "", published.received, None)


def _headers(directory: Path, published: Head, offset: int) -> Iterator[Header]:
    segments = segment.listing(directory)
    covering = [s for s in segments if s.base <= offset][-1:]
    for each in covering + [s for s in segments if s.base > offset]:
        if each.base <= published.segment:
            yield from _frame_headers(each, published, offset)


def _frame_headers(log_segment: Segment, published: Head, offset: int) -> Iterator[Header]:
    with open(log_segment.path, "rb") as file:
        fd = file.fileno()
        size = published.size if log_segment.base == published.segment else os.fstat(fd).st_size
        for _, found in segment.walk(fd, segment.locate(fd, log_segment, size, offset=offset), size):
            if isinstance(found, Header):
                yield found


def _archived_ranges(archived: Archived, number: int) -> Iterator[AppendedRange]:
    """Yield one appended range per producer; together they cover the file, for its rows are not cut apart."""
    columns = pq.read_table(archived.path, columns=["_producer", "_occurred", "_received"])
    times = columns.set_column(1, "_occurred", columns["_occurred"].cast(pa.int64()))
    times = times.set_column(2, "_received", columns["_received"].cast(pa.int64()))
    producers = (
        times.group_by("_producer").aggregate([("_occurred", "max"), ("_received", "max")]).to_pylist()
    )
    first = pc.min(times["_received"]).as_py()
    for index, row in enumerate(producers):
        base, producer = archived.base if index == 0 else archived.end, row["_producer"] or ""
        newest = row["_occurred_max"]
        yield AppendedRange(number, base, archived.end, producer, row["_received_max"], newest, first=first)
