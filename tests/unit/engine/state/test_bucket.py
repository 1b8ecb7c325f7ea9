"""A bucket's state: chunks, snapshots, and a cache that retried and doubled tasks cannot spoil."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from headwater.engine.state import bucket as buckets
from headwater.engine.state.bucket import Bucket, BucketMeta
from headwater.engine.state.cache import Cache
from headwater.engine.state.chunk_files import Files
from headwater.engine.state.run_files import StateRunFiles
from headwater.operators.event_time import NEVER
from headwater.operators.latest import Latest
from headwater.operators.memory import sorted_runs
from headwater.operators.memory.run import Stretch
from headwater.operators.memory.sorted_runs import Limits
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

    def get(self, chunk: Stretch) -> bytes:
        return self.chunks[chunk.file]

    def put(self, data: bytes) -> Stretch:
        name = str(len(self.chunks))
        self.chunks[name] = data
        return Stretch(name, len(data))


def run(store: Store, cache: Cache, rows: list[dict[str, Any]]) -> dict[str, int]:
    """Run a task's step and return the state after it."""
    bucket = Bucket(Sum(), SCHEMA, ("node", 0), StateRunFiles(Path(), store))
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


EVENTS = pa.schema([("k", pa.string()), ("n", pa.int64()), ("at", pa.timestamp("us", "UTC"))])
LATEST = Latest(("k",), "at")


@examples(60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.tuples(ROWS, st.integers(0, 1), st.sampled_from(["commit", "retry", "twice"])), max_size=20),
    st.sampled_from([Limits(), Limits(0, 0, 1), Limits(400, 2, 300), Limits(1 << 20, 3, 1 << 20)]),
)
def test_retried_and_doubled_tasks_spoil_no_containers(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    batches: list[tuple[list[dict[str, Any]], int, str]],
    limits: Limits,
) -> None:
    """As above, with containers whose runs are spilled, merged and mapped in the middle of it."""
    monkeypatch.setattr(sorted_runs, "LIMITS", limits)
    caches, meta, expected = (Cache(), Cache()), BucketMeta(), dict[str, int]()
    for time, (rows, worker, fate) in enumerate(batches):
        if fate == "retry":
            _step(tmp_path, meta, caches[worker], rows, time)
        if fate == "twice":
            _step(tmp_path, meta, caches[1 - worker], rows, time)
        newest = {each["k"]: max(row["n"] for row in rows if row["k"] == each["k"]) for each in rows}
        expected |= newest
        meta, told = _step(tmp_path, meta, caches[worker], rows, time)
        assert told == newest
        assert BucketMeta.from_json(json.loads(json.dumps(meta.to_json()))) == meta
    bucket = Bucket(LATEST, EVENTS, ("node", 0), StateRunFiles(tmp_path, Files(tmp_path)))
    held = bucket.load(meta, Cache()).state.rows().to_pylist() if batches else []
    assert {row["k"]: row["n"] for row in held} == expected


def _step(
    folder: Path, meta: BucketMeta, cache: Cache, rows: list[dict[str, Any]], time: int
) -> tuple[BucketMeta, dict[str, int]]:
    bucket = Bucket(LATEST, EVENTS, ("node", 0), StateRunFiles(folder, Files(folder)))
    state = bucket.load(meta, cache).state
    step = LATEST.step(state, pa.Table.from_pylist([{**row, "at": time} for row in rows], EVENTS), NEVER)
    told = {row["k"]: row["n"] for row in step.out.to_pylist()}
    return bucket.store(meta, state, step.chunk, cache), told


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
    bucket = Bucket(Sum(), SCHEMA, ("node", 0), StateRunFiles(Path(), store))
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
