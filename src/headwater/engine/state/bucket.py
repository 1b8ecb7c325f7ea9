"""A bucket's state as it is stored: a small log of chunks, and a list of them.

A step appends a chunk. Now and then the newer chunks are compacted into one, and when they outweigh
the snapshot before them, a new snapshot takes the place of all. A chunk is never changed, and its
name is random, so a task that is retried or run twice at a time disturbs no other: what counts is
which chunks the driver's manifest names.

Invariant: restoring the chunks from first to last gives the state, in any process.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import pyarrow as pa

from headwater.engine.exchange import blobs
from headwater.engine.state.cache import OVERHEAD, STATES, Cache, CachedState
from headwater.engine.state.chunk_files import new_name
from headwater.engine.state.run_files import StateRunFiles
from headwater.operators.memory.operator_memory import OperatorMemory, StoredMemory
from headwater.operators.memory.run import Stretch
from headwater.operators.operator import Operator

COMPACT_AT = 64
"""Chunks after a snapshot that are compacted into one."""
SNAPSHOT_BYTES = 1 << 20
"""Chunks below this size are not worth a snapshot."""


@dataclass(frozen=True)
class BucketMeta:
    """What is known of a bucket without reading its chunks."""

    chunks: tuple[Stretch, ...] = ()
    next_timer: int | None = None
    """The clock at which the bucket wants to be woken."""
    memory: StoredMemory | None = None
    """What its containers have stored, where its operator has any instead of chunks."""
    save: str = ""
    """The name of the last time that the containers were saved."""

    @property
    def stored(self) -> list[Stretch]:
        """All stretches of files that it is made of."""
        return [*self.chunks, *(() if self.memory is None else self.memory.stretches)]

    @property
    def size(self) -> int:
        """The bytes of all that it is made of."""
        return sum(chunk.size for chunk in self.stored)

    def to_json(self) -> list[Any]:
        """Return the form that is stored."""
        memory = None if self.memory is None else self.memory.to_json()
        return [self.chunks, self.next_timer, memory, self.save]

    @classmethod
    def from_json(cls, stored: list[Any]) -> BucketMeta:
        """Read what ``to_json`` has written."""
        chunks, next_timer, memory, save = [*stored, None, ""][:4] if len(stored) == 2 else stored
        opened = None if memory is None else StoredMemory.from_json(memory)
        return cls(tuple(Stretch(*chunk) for chunk in chunks), next_timer, opened, save)


class Loaded(NamedTuple):
    """A state, and what it took to have it."""

    state: Any
    hit: bool
    bytes_read: int


class Bucket:
    """One bucket of an operator during a micro-batch."""

    def __init__(
        self, operator: Operator[Any], schema: pa.Schema, key: tuple[str, int], files: StateRunFiles
    ):
        self._operator, self._schema, self._key = operator, schema, key
        self._files, self._chunks = files, files.chunks

    def load(self, meta: BucketMeta, cache: Cache = STATES) -> Loaded:
        """Return the state: from memory, from memory and newer chunks, or from all chunks."""
        entry = cache.take(self._key)
        if meta.memory is not None:
            return self._opened(meta.memory, entry if entry and entry.file == meta.save else None)
        restored = _restored(entry, meta) if entry is not None else 0
        state = entry.state if entry is not None and restored else self._operator.initial_state(self._schema)
        data = [self._chunks.get(chunk) for chunk in meta.chunks[restored:]]
        for part in (part for each in data for part in _parts(each)):
            self._operator.restore_chunk(state, part)
        return Loaded(state, restored > 0, sum(map(len, data)))

    def store(
        self, meta: BucketMeta, state: Any, chunk: pa.Table | None, cache: Cache = STATES
    ) -> BucketMeta:
        """Store what a step has learnt, and keep the state at hand."""
        memory = self._operator.memory(state)
        if memory is not None:
            return self._saved(meta, state, memory, cache)
        if chunk is not None and chunk.num_rows:
            meta = self._stored(meta, state, blobs.encode(chunk))
        if meta.chunks:
            cache.put(self._key, CachedState(state, meta.chunks[-1].file), meta.size)
        return replace(meta, next_timer=self._operator.next_timer(state))

    def _opened(self, stored: StoredMemory, entry: CachedState | None) -> Loaded:
        """Return a state whose containers look into what is stored."""
        if entry is not None:
            return Loaded(entry.state, True, 0)
        state = self._operator.initial_state(self._schema)
        memory = self._operator.memory(state)
        assert memory is not None, "it has saved containers"
        memory.open(stored, self._files)
        return Loaded(state, False, self._files.bytes_read)

    def _saved(self, meta: BucketMeta, state: Any, memory: OperatorMemory, cache: Cache) -> BucketMeta:
        """Let the containers of a state store what they have learnt."""
        stored = memory.save(self._files)
        if stored != meta.memory:
            meta = BucketMeta(memory=stored, save=new_name())
        cache.put(self._key, CachedState(state, meta.save), memory.size // OVERHEAD)
        return replace(meta, next_timer=self._operator.next_timer(state))

    def _stored(self, meta: BucketMeta, state: Any, learnt: bytes) -> BucketMeta:
        """Store one chunk: what was learnt, compacted with what is newer than the first, or a snapshot."""
        first, newer = meta.chunks[:1], meta.chunks[1:]
        if first and sum(each.size for each in newer) + len(learnt) > max(first[0].size, SNAPSHOT_BYTES):
            return self._appended((), blobs.encode(self._operator.snapshot(state)))
        if len(meta.chunks) >= COMPACT_AT:
            return self._appended(first, self._compacted([*map(self._chunks.get, newer), learnt]))
        return self._appended(meta.chunks, learnt)

    def _appended(self, chunks: tuple[Stretch, ...], data: bytes) -> BucketMeta:
        return BucketMeta((*chunks, self._chunks.put(data)))

    def _compacted(self, chunks: list[bytes]) -> bytes:
        """Make one chunk of several; each stays a record batch of its own."""
        return blobs.encode(pa.concat_tables([part for each in chunks for part in _parts(each)]))


def _restored(entry: CachedState, meta: BucketMeta) -> int:
    """Return how many of the chunks that are stored an entry was made from; 0 if it is of others."""
    files = [chunk.file for chunk in meta.chunks]
    return files.index(entry.file) + 1 if entry.file in files else 0


def _parts(data: bytes) -> Iterator[pa.Table]:
    for batch in pa.ipc.open_stream(pa.py_buffer(data)):
        yield pa.Table.from_batches([batch])
