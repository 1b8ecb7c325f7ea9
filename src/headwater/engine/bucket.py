"""A bucket's state as Spark keeps it: a small log of chunks, and one value about them.

A step appends a chunk. Now and then the newer chunks are joined into one, and when they outweigh
the snapshot before them, a new snapshot takes the place of all. Invariant: absorbing the chunks
from first to last gives the state, in any process.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

import pyarrow as pa

from headwater.engine import blobs
from headwater.engine.cache import STATES, Cache, Entry
from headwater.operators.operator import Operator

JOIN_AT = 64
"""Chunks after a snapshot that are joined into one."""
SNAPSHOT_BYTES = 1 << 20
"""Chunks below this size are not worth a snapshot."""


class Chunks(Protocol):
    """Where chunks are kept: Spark's map state, or a dict."""

    def get(self, number: int) -> bytes:
        """Return a chunk."""

    def put(self, number: int, data: bytes) -> None:
        """Store a chunk."""

    def remove(self, number: int) -> None:
        """Remove a chunk."""


class Chunk(NamedTuple):
    """What is known of a chunk without reading it."""

    token: str
    size: int


@dataclass(frozen=True)
class Meta:
    """What is known of a bucket without reading its chunks."""

    first: int = 0
    chunks: tuple[Chunk, ...] = ()
    timer: int | None = None
    """When the bucket wants to be woken, in milliseconds."""

    @property
    def next(self) -> int:
        """The number that the next chunk will get."""
        return self.first + len(self.chunks)

    @property
    def size(self) -> int:
        """The bytes of all chunks."""
        return sum(chunk.size for chunk in self.chunks)

    def encode(self) -> str:
        """Return the form that is stored."""
        return json.dumps([self.first, self.chunks, self.timer])

    @classmethod
    def decode(cls, text: str) -> Meta:
        """Read what ``encode`` has written."""
        first, chunks, timer = json.loads(text)
        return cls(first, tuple(Chunk(*chunk) for chunk in chunks), timer)


class Loaded(NamedTuple):
    """A state, and what it took to have it."""

    state: Any
    hit: bool
    bytes_read: int


class Bucket:
    """One bucket of an operator during a micro-batch."""

    def __init__(self, operator: Operator[Any], schema: pa.Schema, key: tuple[str, int], chunks: Chunks):
        self._operator, self._schema, self._key = operator, schema, key
        self._chunks = chunks

    def load(self, meta: Meta, cache: Cache = STATES) -> Loaded:
        """Return the state: from memory, from memory and newer chunks, or from all chunks."""
        entry = cache.take(self._key)
        if entry is not None and _is_of(entry, meta):
            state, start = entry.state, entry.newest + 1
        else:
            state, start = self._operator.begin(self._schema), meta.first
        data = [self._chunks.get(number) for number in range(start, meta.next)]
        for part in (part for each in data for part in _parts(each)):
            self._operator.absorb(state, part)
        return Loaded(state, start > meta.first, sum(map(len, data)))

    def store(self, meta: Meta, state: Any, chunk: pa.Table | None, cache: Cache = STATES) -> Meta:
        """Store what a step has learnt, and keep the state at hand."""
        if chunk is not None and chunk.num_rows:
            meta = self._append(meta, blobs.encode(chunk))
            if sum(each.size for each in meta.chunks[1:]) > max(meta.chunks[0].size, SNAPSHOT_BYTES):
                meta = self._snapshot(meta, state)
            elif len(meta.chunks) > JOIN_AT:
                meta = self._join(meta)
        if meta.chunks:
            cache.put(self._key, Entry(state, meta.next - 1, meta.chunks[-1].token), meta.size)
        return meta

    def _append(self, meta: Meta, data: bytes) -> Meta:
        self._chunks.put(meta.next, data)
        return replace(meta, chunks=(*meta.chunks, Chunk(os.urandom(8).hex(), len(data))))

    def _emptied(self, meta: Meta) -> Meta:
        for number in range(meta.first, meta.next):
            self._chunks.remove(number)
        return Meta(meta.next, (), meta.timer)

    def _snapshot(self, meta: Meta, state: Any) -> Meta:
        return self._append(self._emptied(meta), blobs.encode(self._operator.snapshot(state)))

    def _join(self, meta: Meta) -> Meta:
        """Join all chunks but the first, and each stays a batch of its own."""
        numbers = range(meta.first + 1, meta.next)
        tail = pa.concat_tables([part for n in numbers for part in _parts(self._chunks.get(n))])
        base = self._chunks.get(meta.first)
        return self._append(self._append(self._emptied(meta), base), blobs.encode(tail))


def _is_of(entry: Entry, meta: Meta) -> bool:
    """Tell whether what is stored begins with what an entry was made from."""
    there = meta.first <= entry.newest < meta.next
    return there and meta.chunks[entry.newest - meta.first].token == entry.token


def _parts(data: bytes) -> Iterator[pa.Table]:
    for batch in pa.ipc.open_stream(pa.py_buffer(data)):
        yield pa.Table.from_batches([batch])
