"""A bucket's state: chunks, snapshots, and a cache that retried and doubled tasks cannot spoil."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.engine.state import bucket as buckets
from headwater.engine.state.bucket import Bucket, BucketMeta
from headwater.engine.state.cache import Cache
from headwater.engine.state.chunk_files import Chunk
from headwater.operators.operator import Operator, Step
from soaking import examples

SCHEMA = pa.schema([("k", pa.string()), ("n", pa.int64())])
COUNTS = pa.schema([("k", pa.string()), ("n", pa.int64())])


class Sum(Operator[dict[str, int]]):
    """Adds up numbers by key; a chunk has the new sums of the keys that changed."""

    key = ("k",)

    def output_schema(self, schema: pa.Schema) -> pa.Schema:
        return COUNTS

    def initial_state(self, schema: pa.Schema) -> dict[str, int]:
        return {}

    def restore_chunk(self, state: dict[str, int], chunk: pa.Table) -> None:
        state.update(zip(chunk["k"].to_pylist(), chunk["n"].to_pylist(), strict=True))

    def step(self, state: dict[str, int], rows: pa.Table, clock: int) -> Step:
        changed = {}
        for row in rows.to_pylist():
            state[row["k"]] = changed[row["k"]] = state.get(row["k"], 0) + row["n"]
        chunk = pa.table({"k": list(changed), "n": list(changed.values())}, schema=COUNTS)
        return Step(chunk, chunk=chunk)

    def next_timer(self, state: dict[str, int]) -> int | None:
        return None

    def snapshot(self, state: dict[str, int]) -> pa.Table:
        return pa.table({"k": list(state), "n": list(state.values())}, schema=COUNTS)


@dataclass
class Store:
    """Chunks that all tasks see, and which of them count: what the driver has listed last."""

    chunks: dict[str, bytes] = field(default_factory=dict)
    meta: BucketMeta = field(default_factory=BucketMeta)

    def task(self) -> Store:
        """Return the same chunks for a task whose list counts only if it is the one that is taken."""
        return Store(self.chunks, self.meta)

    def get(self, chunk: Chunk) -> bytes:
        return self.chunks[chunk.file]

    def put(self, data: bytes) -> Chunk:
        name = str(len(self.chunks))
        self.chunks[name] = data
        return Chunk(name, len(data))


def run(store: Store, cache: Cache, rows: list[dict[str, Any]]) -> dict[str, int]:
    """Run a task's step and return the state after it."""
    bucket = Bucket(Sum(), SCHEMA, ("node", 0), store)
    loaded = bucket.load(store.meta, cache)
    step = Sum().step(loaded.state, pa.Table.from_pylist(rows, schema=SCHEMA), 0)
    store.meta = bucket.store(store.meta, loaded.state, step.chunk, cache)
    return dict(loaded.state)


ROWS = st.lists(st.fixed_dictionaries({"k": st.sampled_from("abcd"), "n": st.integers(-5, 5)}), max_size=4)


@given(
    st.lists(st.tuples(ROWS, st.integers(0, 1), st.sampled_from(["commit", "retry", "twice"])), max_size=40)
)
@examples(200)
def test_retried_and_doubled_tasks_spoil_neither_state_nor_cache(
    batches: list[tuple[list[dict[str, Any]], int, str]],
) -> None:
    """Two workers with a cache each; any task may be lost after its step, or run in both at once."""
    caches, store, expected = (Cache(), Cache()), Store(), dict[str, int]()
    for rows, worker, fate in batches:
        if fate == "retry":
            run(store.task(), caches[worker], rows)
        if fate == "twice":
            run(store.task(), caches[1 - worker], rows)
        for row in rows:
            expected[row["k"]] = expected.get(row["k"], 0) + row["n"]
        store = store.task()
        assert run(store, caches[worker], rows) == expected
        assert BucketMeta.from_json(json.loads(json.dumps(store.meta.to_json()))) == store.meta
    assert run(store, Cache(), []) == expected


def test_chunks_are_compacted_and_replaced_by_snapshots(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(buckets, "COMPACT_AT", 4)
    monkeypatch.setattr(buckets, "SNAPSHOT_BYTES", 2000)
    store, cache = Store(), Cache()
    counts = []
    for number in range(100):
        state = run(store, cache, [{"k": f"k{number % 3}", "n": 1}])
        counts.append(len(store.meta.chunks))
        assert sum(len(store.chunks[chunk.file]) for chunk in store.meta.chunks) == store.meta.size
    assert max(counts) <= 5
    assert run(store, Cache(), []) == state == {"k0": 34, "k1": 33, "k2": 33}


def test_a_state_at_hand_is_not_read_again() -> None:
    store, cache = Store(), Cache()
    bucket = Bucket(Sum(), SCHEMA, ("node", 0), store)
    run(store, cache, [{"k": "a", "n": 1}])
    loaded = bucket.load(store.meta, cache)
    assert (loaded.hit, loaded.bytes_read) == (True, 0)
    assert not bucket.load(store.meta, cache).hit  # taken out to be changed, and not put back


def test_a_cache_lets_go_of_what_was_used_longest_ago() -> None:
    from headwater.engine.state.cache import OVERHEAD, CachedState

    cache = Cache(limit=10 * OVERHEAD)
    for number in range(3):
        cache.put(("node", number), CachedState(None, ""), 4)
    assert cache.take(("node", 0)) is None
    assert cache.take(("node", 1)) is not None
    cache.put(("node", 9), CachedState(None, ""), 100)
    assert len(cache) == 0
