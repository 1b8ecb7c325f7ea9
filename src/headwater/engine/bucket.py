"""A bucket's state as it is stored: a small log of chunks, each a file, and a list of them.

A step appends a chunk. Now and then the newer chunks are joined into one, and when they outweigh
the snapshot before them, a new snapshot takes the place of all. A chunk is never changed, and its
name is random, so a task that is retried or run twice at a time disturbs no other: what counts is
which chunks the driver has listed.

Invariant: absorbing the chunks from first to last gives the state, in any process.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
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
    """Where chunks are kept."""

    def get(self, token: str) -> bytes:
        """Return a chunk."""

    def put(self, token: str, data: bytes) -> None:
        """Store a chunk under a name that no other has."""


class Files:
    """Chunks as files of a directory, which all workers see."""

    def __init__(self, folder: str):
        self._folder = Path(folder)

    def get(self, token: str) -> bytes:
        """Return a chunk."""
        return (self._folder / token).read_bytes()

    def put(self, token: str, data: bytes) -> None:
        """Store a chunk; a reader never sees a part of it, as its name is known only when it is whole."""
        (self._folder / token).write_bytes(data)


class Chunk(NamedTuple):
    """What is known of a chunk without reading it."""

    token: str
    size: int


@dataclass(frozen=True)
class Meta:
    """What is known of a bucket without reading its chunks."""

    chunks: tuple[Chunk, ...] = ()
    wake: int | None = None
    """The clock at which the bucket wants to be woken."""

    @property
    def size(self) -> int:
        """The bytes of all chunks."""
        return sum(chunk.size for chunk in self.chunks)

    def to_json(self) -> list[Any]:
        """Return the form that is stored."""
        return [self.chunks, self.wake]

    @classmethod
    def from_json(cls, told: list[Any]) -> Meta:
        """Read what ``to_json`` has written."""
        chunks, wake = told
        return cls(tuple(Chunk(*chunk) for chunk in chunks), wake)


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
        known = _known(entry, meta) if entry is not None else 0
        state = entry.state if entry is not None and known else self._operator.begin(self._schema)
        data = [self._chunks.get(chunk.token) for chunk in meta.chunks[known:]]
        for part in (part for each in data for part in _parts(each)):
            self._operator.absorb(state, part)
        return Loaded(state, known > 0, sum(map(len, data)))

    def store(self, meta: Meta, state: Any, chunk: pa.Table | None, cache: Cache = STATES) -> Meta:
        """Store what a step has learnt, and keep the state at hand."""
        if chunk is not None and chunk.num_rows:
            meta = self._append(meta, blobs.encode(chunk))
            if sum(each.size for each in meta.chunks[1:]) > max(meta.chunks[0].size, SNAPSHOT_BYTES):
                meta = self._append(replace(meta, chunks=()), blobs.encode(self._operator.snapshot(state)))
            elif len(meta.chunks) > JOIN_AT:
                meta = self._join(meta)
        if meta.chunks:
            cache.put(self._key, Entry(state, meta.chunks[-1].token), meta.size)
        return replace(meta, wake=self._operator.wake(state))

    def _append(self, meta: Meta, data: bytes) -> Meta:
        chunk = Chunk(os.urandom(8).hex(), len(data))
        self._chunks.put(chunk.token, data)
        return replace(meta, chunks=(*meta.chunks, chunk))

    def _join(self, meta: Meta) -> Meta:
        """Join all chunks but the first, and each stays a batch of its own."""
        first, *newer = meta.chunks
        tail = pa.concat_tables([part for each in newer for part in _parts(self._chunks.get(each.token))])
        return self._append(replace(meta, chunks=(first,)), blobs.encode(tail))


def _known(entry: Entry, meta: Meta) -> int:
    """Return how many of the chunks that are stored an entry was made from; 0 if it is of others."""
    tokens = [chunk.token for chunk in meta.chunks]
    return tokens.index(entry.token) + 1 if entry.token in tokens else 0


def _parts(data: bytes) -> Iterator[pa.Table]:
    for batch in pa.ipc.open_stream(pa.py_buffer(data)):
        yield pa.Table.from_batches([batch])
