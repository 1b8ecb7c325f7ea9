"""A bucket's state: containers, and a cache that retried and doubled tasks cannot spoil."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from headwater.engine.files.local_files import LocalFiles
from headwater.engine.state.bucket import Bucket, BucketMeta
from headwater.engine.state.cache import Cache
from headwater.engine.state.chunk_files import Files
from headwater.engine.state.run_files import StateRunFiles
from headwater.operators.event_time import NEVER
from headwater.operators.latest import Latest
from headwater.operators.memory import sorted_runs
from headwater.operators.memory.sorted_runs import Limits
from soaking import examples

ROWS = st.lists(st.fixed_dictionaries({"k": st.sampled_from("abcd"), "n": st.integers(-5, 5)}), max_size=4)


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
    """Two workers with a cache each; any task may be lost after its step, or run in both at once."""
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
    bucket = Bucket(LATEST, EVENTS, ("node", 0), _files(tmp_path))
    held = bucket.load(meta, Cache()).state.rows().to_pylist() if batches else []
    assert {row["k"]: row["n"] for row in held} == expected


def _files(folder: Path) -> StateRunFiles:
    return StateRunFiles(LocalFiles(folder), Files(LocalFiles(folder)))


def _step(
    folder: Path, meta: BucketMeta, cache: Cache, rows: list[dict[str, Any]], time: int
) -> tuple[BucketMeta, dict[str, int]]:
    bucket = Bucket(LATEST, EVENTS, ("node", 0), _files(folder))
    state = bucket.load(meta, cache).state
    step = LATEST.step(state, pa.Table.from_pylist([{**row, "at": time} for row in rows], EVENTS), NEVER)
    told = {row["k"]: row["n"] for row in step.out.to_pylist()}
    return bucket.store(meta, state, cache), told


def test_a_state_at_hand_is_not_read_again(tmp_path: Path) -> None:
    cache = Cache()
    meta, _ = _step(tmp_path, BucketMeta(), cache, [{"k": "a", "n": 1}], 0)
    bucket = Bucket(LATEST, EVENTS, ("node", 0), _files(tmp_path))
    loaded = bucket.load(meta, cache)
    assert (loaded.hit, loaded.bytes_read) == (True, 0)
    again = bucket.load(meta, cache)  # taken out to be changed, and not put back
    assert not again.hit and again.bytes_read > 0


def test_what_a_state_holds_in_memory_counts(tmp_path: Path) -> None:
    cache = Cache()
    _step(tmp_path, BucketMeta(), cache, [{"k": "a", "n": 1}], 0)
    entry = cache.take(("node", 0))
    assert entry is not None and entry.size == entry.state.runs.size > 0
