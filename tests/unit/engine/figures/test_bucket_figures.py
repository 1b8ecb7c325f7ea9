"""How a state is spread, read while its node may run."""

from __future__ import annotations

from pathlib import Path

from headwater.engine.figures.bucket_figures import BucketFigures, read_buckets
from headwater.engine.files.local_files import LocalFiles
from headwater.engine.state.bucket import BucketMeta
from headwater.engine.state.state_manifests import StateManifests
from headwater.operators.memory.operator_memory import StoredMemory
from headwater.operators.memory.run import Stretch
from headwater.operators.memory.sorted_runs import StoredRuns


def meta(size: int) -> BucketMeta:
    return BucketMeta(StoredMemory({"rows": StoredRuns((Stretch("f", size),))}), save="s")


def test_the_newest_state_counts_and_the_largest_buckets_are_told(tmp_path: Path) -> None:
    assert read_buckets(tmp_path, None) is None
    states = StateManifests(LocalFiles(tmp_path / "state"))
    states.begin(5)
    assert read_buckets(tmp_path, None) is None, "a mark has no buckets"
    states.commit(0, {0: meta(7)})
    states.commit(1, {0: meta(10), 1: meta(70), 3: meta(15), 4: meta(5)})
    StateManifests(LocalFiles(tmp_path / "state")).begin()
    assert read_buckets(tmp_path, None) == BucketFigures(5, 100, ((1, 70), (3, 15), (0, 10)))
