"""A frame is the unit of the log on disk: a checksummed header and an Arrow record batch.

The header has a checksum of its own, so planning and recovery read headers only; the payload's
checksum is in the header. The payload is one Arrow message, which says itself how it is compressed,
without its schema: the header's schema version and flags say which columns it has.

Invariant: bytes that do not match both checksums are never taken for records.
"""

from __future__ import annotations

import struct
import zlib
from enum import IntEnum, IntFlag
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater import record

MAGIC = b"HWF1"
NO_TIME = -(1 << 63)
"""Newest event time of a frame that has none."""
PREFIX = struct.Struct("<4sHHII")  # magic, header length, zero, payload length, header checksum
_FIELDS = struct.Struct("<BBHIqqIqqqqqqI")
HEADER_MAX = PREFIX.size + _FIELDS.size + 255
ROWS_MAX = 1 << 16
BYTES_MAX = 8 << 20
SMALL = 1 << 10
"""Bytes of columns up to which a frame is not compressed: it would be no smaller."""
_COPIED = 1 << 14
Compression = Literal["lz4", "zstd", "none"]
# Frames are encoded side by side, so a frame's columns need no threads of their own.
_OPTIONS = {
    name: pa.ipc.IpcWriteOptions(compression=None if name == "none" else name, use_threads=False)
    for name in get_args(Compression)
}


class Kind(IntEnum):
    """What a frame is for."""

    DATA = 0
    EPOCH = 1  # a named producer has started: no records, older epochs are fenced
    MARK = 3  # its producer sends nothing older than ``newest`` any more: no records
    COMPACTED = 2  # what compaction has left of many frames; offsets have gaps


class Flag(IntFlag):
    """Which metadata columns the payload has, and whether the batch goes on in the next frame."""

    NONE = 0
    DELETED = 1
    OCCURRED = 2
    SENT = 4
    HEADERS = 8
    SEQUENCE = 16  # sequence numbers have gaps: each row's distance from the first one
    STEPS = 32  # the same, where the steps are small: each row's distance from the one before
    MORE = 64  # the next frame belongs to the same batch


COLUMNS = {
    Flag.DELETED: pa.field(record.DELETED, pa.bool_()),
    Flag.OCCURRED: pa.field("_occurred", record.META["_occurred"]),
    Flag.SENT: pa.field("_sent", record.META["_sent"]),
    Flag.HEADERS: pa.field("_headers", record.HEADERS),
    Flag.SEQUENCE: pa.field("_sequence", pa.uint32()),
    Flag.STEPS: pa.field("_steps", pa.uint8()),
}
COMPACTED = [pa.field(name, kind) for name, kind in record.META.items() if name != "_partition"]
"""Metadata columns of a compacted frame: its records come from many producers and times."""


class Header(NamedTuple):
    """What is known of a frame without reading its payload."""

    kind: int
    flags: int
    schema_version: int
    rows: int
    base: int
    last: int
    """Offset of the last record; one less than ``base`` when there is none."""
    epoch: int
    first_sequence: int
    last_sequence: int
    previous_sequence: int
    """The producer's last sequence in this partition before this frame: a chain to verify."""
    received: int
    sent: int
    newest: int
    """The newest event time in the frame, or NO_TIME."""
    payload_checksum: int
    producer: str
    payload_size: int

    def size(self) -> int:
        """Return the bytes of the whole frame."""
        return frame_size(self.producer, self.payload_size)


class Draft(NamedTuple):
    """A frame before the log has given it offset and time: costly parts done."""

    rows: int
    flags: int
    schema_version: int
    first_sequence: int
    last_sequence: int
    sent: int
    newest: int
    payload: pa.Buffer
    payload_checksum: int


def frame_size(producer: str, payload: int) -> int:
    """Return the bytes of a frame, by its producer and the size of its payload."""
    return PREFIX.size + _FIELDS.size + len(producer.encode()) + payload


def pack(header: Header) -> bytes:
    """Return a header's bytes, checksummed; the payload follows them in the file."""
    producer = header.producer.encode()
    fields = _FIELDS.pack(*header[:14]) + producer
    start = PREFIX.pack(MAGIC, len(fields), 0, header.payload_size, 0)
    return start[:-4] + struct.pack("<I", zlib.crc32(fields, zlib.crc32(start[:-4]))) + fields


def unpack(data: bytes | memoryview, at: int = 0) -> Header | None:
    """Return the header at a position in a buffer, or None if no whole, undamaged one is there."""
    if len(data) - at < PREFIX.size:
        return None
    magic, length, _, payload_size, checksum = PREFIX.unpack_from(data, at)
    start = at + PREFIX.size
    if magic != MAGIC or length < _FIELDS.size or len(data) - start < length:
        return None
    if zlib.crc32(data[start : start + length], zlib.crc32(data[at : start - 4])) != checksum:
        return None
    producer = bytes(data[start + _FIELDS.size : start + length]).decode()
    fields: tuple[Any, ...] = _FIELDS.unpack_from(data, start)
    return Header._make((*fields, producer, payload_size))


def draft(
    batch: pa.RecordBatch,
    version: int,
    sequence: npt.NDArray[np.int64],
    compression: Compression = "lz4",
    **times: int,
) -> Draft:
    """Encode a batch (its own columns, then metadata columns) as a frame that has no offset yet."""
    flags, names = Flag.NONE, batch.schema.names
    for flag, field in COLUMNS.items():
        if field.name in names:
            flags |= flag
    first, last = int(sequence[0]), int(sequence[-1])
    if last - first != len(sequence) - 1:
        steps = np.diff(sequence, prepend=first)
        flag = Flag.STEPS if steps.max() < 256 else Flag.SEQUENCE
        numbers = steps.astype(np.uint8) if flag == Flag.STEPS else (sequence - first).astype(np.uint32)
        flags |= flag
        batch = batch.append_column(COLUMNS[flag], pa.array(numbers))
    payload = encode(batch, compression)
    return Draft(
        len(batch), flags, version, first, last, times["sent"], times["newest"], payload, zlib.crc32(payload)
    )


def encode(batch: pa.RecordBatch, compression: Compression = "lz4") -> pa.Buffer:
    """Encode a batch as one Arrow message, without the schema message that precedes it."""
    if batch.nbytes <= SMALL:
        return batch.serialize()
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema, options=_OPTIONS[compression]) as writer:
        writer.write_batch(batch)
        after = sink.tell()
    before = batch.schema.serialize().size
    return sink.getvalue().slice(before, after - before)


def decode(header: Header, payload: Any, schema: pa.Schema) -> pa.RecordBatch:
    """Decode a payload; ``schema`` is the topic's own, of the header's version."""
    columns = [f.with_nullable(True) for f in schema]
    if header.kind == Kind.COMPACTED:
        columns += COMPACTED
    else:
        columns += [field for flag, field in COLUMNS.items() if header.flags & flag]
    buffer = pa.py_buffer(payload)
    if header.payload_size <= _COPIED and buffer.address % 8:
        buffer = pa.py_buffer(bytes(payload))  # columns of a small frame are views of it, and must be aligned
    return pa.ipc.read_record_batch(buffer, pa.schema(columns))
