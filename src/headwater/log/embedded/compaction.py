"""Compaction: closed segments are rewritten with only the newest record of each key.

It runs beside readers and appenders: it touches no active segment, writes new files, and switches
to them in one rename each. Invariant: a record keeps its offset, and the newest record of a key is
never removed, except a tombstone whose time is over.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headwater import durable, durations
from headwater.log.embedded.catalog import StoredTopic
from headwater.log.embedded.partition import frame, segment
from headwater.log.embedded.partition.frame import Header, Kind
from headwater.log.embedded.partition.segment import IndexEntry, Segment
from headwater.log.embedded.partition.writer import SEGMENT_BYTES, Partition
from headwater.log.embedded.stream import RecordReader
from headwater.record import DELETED
from headwater.topic import TOMBSTONE_TIME, Topic
from headwater.values import keys

_NEWEST = pa.schema([("key", pa.binary()), ("offset", pa.int64())])


def compact(root: Path, stored: StoredTopic, number: int, partition: Partition) -> None:
    """Compact everything received so far in one partition."""
    with partition.locked():
        partition.refresh()
        oldest = partition.now() - (stored.topic.retention or TOMBSTONE_TIME) // durations.MICROSECOND
        if partition.tail.at:
            partition.roll()
        active = partition.tail.segment.base
    directory = stored.partition(number)
    _sweep(directory)
    closed = [s for s in segment.listing(directory) if s.base < active]
    if not closed:
        return
    survivors = _survivors(_batches(root, stored, number, (closed[0].base, active)), stored.topic, oldest)
    for group, end in _groups(closed, active):
        _rewrite(root, stored, number, (group, end), survivors)


def _sweep(directory: Path) -> None:
    """Remove what a compaction that was killed has left."""
    for left in segment.superseded(directory):
        _unlink(left)
    for path in filter(durable.is_draft, directory.iterdir()):
        path.unlink()


def worthwhile(directory: Path) -> bool:
    """Tell whether at least half of the closed bytes have never been compacted."""
    closed = segment.listing(directory)[:-1]
    raw = sum(os.stat(s.path).st_size for s in closed if s.end is None)
    return raw > sum(os.stat(s.path).st_size for s in closed if s.end is not None)


def _survivors(batches: Iterator[pa.RecordBatch], topic: Topic, oldest: int) -> npt.NDArray[np.int64]:
    """Return the offsets of the records that stay, in order; memory follows the number of keys."""
    newest = _NEWEST.empty_table()
    expired: list[npt.NDArray[np.int64]] = []
    for batch in batches:
        offsets = batch.column("_offset")
        keyed = pa.table([keys.key_bytes([batch.column(k) for k in topic.key]), offsets], schema=_NEWEST)
        merged = pa.concat_tables([newest, keyed]).group_by("key").aggregate([("offset", "max")])
        newest = merged.rename_columns({"offset_max": "offset"}).select(["key", "offset"])
        received = batch.column("_received").cast(pa.int64())
        is_expired = pc.and_(batch.column(DELETED), pc.less(received, oldest))
        expired.append(offsets.filter(is_expired).to_numpy())
    newest_offsets = np.sort(newest.column("offset").to_numpy())
    return np.setdiff1d(newest_offsets, np.concatenate(expired)) if expired else newest_offsets


def _groups(closed: list[Segment], active: int) -> Iterator[tuple[list[Segment], int]]:
    """Yield neighbours to be merged into one file, with the offset up to which it will stand."""
    group: list[Segment] = []
    size = 0
    for each, following in zip(closed, [*(s.base for s in closed), active][1:], strict=True):
        group.append(each)
        size += os.stat(each.path).st_size
        if size >= SEGMENT_BYTES or following == active:
            yield group, following
            group, size = [], 0


def _rewrite(
    root: Path,
    stored: StoredTopic,
    number: int,
    work: tuple[list[Segment], int],
    survivors: npt.NDArray[np.int64],
) -> None:
    """Write what stays of a group of segments into a new one that takes their place."""
    group, end = work
    base, directory = group[0].base, stored.partition(number)
    new = Segment(base, end, directory / segment.name(base, end))
    entries: list[IndexEntry] = []
    with durable.drafting(new.path) as draft, open(draft, "wb") as file:
        for batch in _surviving(_batches(root, stored, number, (base, end)), survivors):
            header, payload = _frame(batch, stored.topic)
            if file.tell() - (entries[-1].at if entries else 0) >= segment.INDEX_EVERY:
                entries.append(IndexEntry(header.base, file.tell(), header.received))
            file.write(frame.pack(header))
            file.write(payload)
        file.flush()
        os.fsync(file.fileno())
        new.index_path.unlink(missing_ok=True)
    for entry in entries:
        segment.add_entry(new, entry)
    for old in group:
        if old.path != new.path:
            _unlink(old)


def _surviving(
    batches: Iterator[pa.RecordBatch], survivors: npt.NDArray[np.int64]
) -> Iterator[pa.RecordBatch]:
    """Yield the records that stay, gathered into batches of a frame's size."""
    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        survived = batch.filter(
            pa.array(np.isin(batch.column("_offset").to_numpy(), survivors, assume_unique=True))
        )
        if len(survived):
            waiting.append(survived)
        size = sum(b.nbytes for b in waiting)
        if size >= frame.BYTES_MAX or sum(map(len, waiting)) >= frame.ROWS_MAX:
            yield pa.concat_batches(waiting)
            waiting = []
    if waiting:
        yield pa.concat_batches(waiting)


def _frame(batch: pa.RecordBatch, topic: Topic) -> tuple[Header, pa.Buffer]:
    payload = frame.encode(batch.drop_columns(["_partition"]))
    offsets = batch.column("_offset")
    received = pc.max(batch.column("_received").cast(pa.int64())).as_py()
    newest = pc.max(batch.column("_occurred").cast(pa.int64())).as_py()
    header = Header(
        Kind.COMPACTED, 0, len(topic.schemas) - 1, len(batch), offsets[0].as_py(), offsets[-1].as_py(),
        0, 0, 0, 0, received, received, frame.NO_TIME if newest is None else newest,
        zlib.crc32(payload), "", len(payload),
    )  # fmt: skip
    return header, payload


def _batches(
    root: Path, stored: StoredTopic, number: int, bounds: tuple[int, int]
) -> Iterator[pa.RecordBatch]:
    return RecordReader(root, lambda: stored, number, bounds[0], meta=True).until(bounds[1])


def _unlink(old: Segment) -> None:
    old.path.unlink(missing_ok=True)
    old.index_path.unlink(missing_ok=True)
