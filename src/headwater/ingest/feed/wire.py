"""The datagrams of a feed: a header of 52 bytes, and lines of JSON behind it.

``docs/ingest.md`` has the form, for receivers in other languages. Invariant: a datagram that was damaged, or
is of another topic or program, is told from one of ours; and one that has records has all that its offsets
name.
"""

from __future__ import annotations

import hashlib
import struct
import zlib
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

MAGIC = b"HWF1"
RECORDS, POINTER, HEARTBEAT = 1, 2, 3
_HEADER = struct.Struct(">4sB3x16sIQQII")
HEADER_BYTES = _HEADER.size
DATAGRAM_BYTES = 1400
"""Bytes of a datagram at the most: one frame of Ethernet, so that nothing is cut on its way."""
_CHECKSUM_BYTES = 4


class FeedDatagram(NamedTuple):
    """What a datagram says: records from one offset up to another, or that there are some."""

    kind: int
    partition: int
    first: int
    end: int
    payload: bytes = b""

    @property
    def lines(self) -> list[bytes]:
        """The records, as JSON."""
        return self.payload.split(b"\n")


def topic_mark(id: str | None) -> bytes:
    """Return what stands for a topic in its datagrams."""
    return hashlib.blake2b((id or "").encode(), digest_size=16).digest()


def encode(datagram: FeedDatagram, mark: bytes) -> bytes:
    """Return a datagram as bytes."""
    kind, partition, first, end, payload = datagram
    fields = (MAGIC, kind, mark, partition, first, end, len(payload))
    unsigned = _HEADER.pack(*fields, 0)[:-_CHECKSUM_BYTES] + payload
    return _HEADER.pack(*fields, zlib.crc32(unsigned)) + payload


def decode(data: bytes, mark: bytes) -> FeedDatagram | None:
    """Return what bytes say, or None if they are damaged, or no datagram of a topic's feed.

    >>> mark = topic_mark("8b1f")
    >>> decode(encode(FeedDatagram(HEARTBEAT, 0, 12, 12), mark), mark)
    FeedDatagram(kind=3, partition=0, first=12, end=12, payload=b'')
    """
    if len(data) < HEADER_BYTES or data[:4] != MAGIC:
        return None
    _, kind, whose, partition, first, end, length, checksum = _HEADER.unpack_from(data)
    payload = data[HEADER_BYTES:]
    unsigned = data[: HEADER_BYTES - _CHECKSUM_BYTES] + payload
    if whose != mark or length != len(payload) or checksum != zlib.crc32(unsigned):
        return None
    found = FeedDatagram(kind, partition, first, end, payload)
    whole = kind != RECORDS or payload.count(b"\n") + 1 == end - first
    return found if whole and first <= end and kind in (RECORDS, POINTER, HEARTBEAT) else None


def packed(partition: int, offsets: Sequence[int], lines: Sequence[bytes]) -> Iterator[FeedDatagram]:
    """Yield datagrams for records; what does not go into one, or has gaps between its offsets, is pointed
    to."""
    ends = np.cumsum([len(line) + 1 for line in lines])
    at = 0
    while at < len(lines):
        before = int(ends[at - 1]) if at else 0
        stop = int(np.searchsorted(ends, before + DATAGRAM_BYTES - HEADER_BYTES + 1, side="right"))
        stop = max(stop, at + 1)
        payload, first, end = b"\n".join(lines[at:stop]), offsets[at], offsets[stop - 1] + 1
        dense = end - first == stop - at and payload.count(b"\n") == stop - at - 1
        if dense and len(payload) <= DATAGRAM_BYTES - HEADER_BYTES:
            yield FeedDatagram(RECORDS, partition, first, end, payload)
        else:
            yield FeedDatagram(POINTER, partition, first, end)
        at = stop
