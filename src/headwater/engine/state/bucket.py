"""A bucket's state as it is stored: containers of immutable files, and a list of these.

A step adds small tables, and now and then a run. A file is never changed, and its name is random, so a task
that is retried or run twice at a time disturbs no other: what counts is which files the driver's manifest
names.

Invariant: opening what a manifest names gives the state, in any process.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import pyarrow as pa

from headwater.engine.state.cache import STATES, Cache, CachedState
from headwater.engine.state.chunk_files import new_name
from headwater.engine.state.run_files import StateRunFiles
from headwater.operators.memory.operator_memory import StoredMemory
from headwater.operators.memory.run import Stretch
from headwater.operators.operator import Operator


@dataclass(frozen=True)
class BucketMeta:
    """What is known of a bucket without reading its files."""

    memory: StoredMemory = field(default_factory=StoredMemory)
    """What its containers have stored."""
    next_timer: int | None = None
    """The clock at which the bucket wants to be woken."""
    save: str = ""
    """The name of the last time that the containers were saved; empty before the first."""

    @property
    def stored(self) -> list[Stretch]:
        """All stretches of files that it is made of."""
        return self.memory.stretches

    @property
    def size(self) -> int:
        """The bytes of all that it is made of."""
        return sum(each.size for each in self.stored)

    def to_json(self) -> list[Any]:
        """Return the form that is stored."""
        return [self.memory.to_json(), self.next_timer, self.save]

    @classmethod
    def from_json(cls, stored: list[Any]) -> BucketMeta:
        """Read what ``to_json`` has written."""
        memory, next_timer, save = stored
        return cls(StoredMemory.from_json(memory), next_timer, save)


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
        self._operator, self._schema, self._key, self._files = operator, schema, key, files
        self.held = 0
        """The bytes that the state has in memory, once it is stored."""

    def load(self, meta: BucketMeta, cache: Cache = STATES) -> Loaded:
        """Return the state: the one at hand, if it is what is stored, or one that looks into that."""
        entry = cache.take(self._key)
        if entry is not None and meta.save and entry.save == meta.save:
            return Loaded(entry.state, True, 0)
        state = self._operator.initial_state(self._schema)
        if meta.save:
            self._operator.memory(state).open(meta.memory, self._files)
        return Loaded(state, False, self._files.bytes_read)

    def store(self, meta: BucketMeta, state: Any, cache: Cache = STATES) -> BucketMeta:
        """Let the containers of a state store what they have learnt, and keep the state at hand."""
        memory = self._operator.memory(state)
        stored = memory.save(self._files)
        if not meta.save or stored != meta.memory:
            meta = BucketMeta(stored, save=new_name())
        self.held = memory.size
        cache.put(self._key, CachedState(state, meta.save), self.held)
        return replace(meta, next_timer=self._operator.next_timer(state))
