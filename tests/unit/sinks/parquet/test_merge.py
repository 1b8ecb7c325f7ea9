"""Small files become larger ones, and no row changes its place."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.errors import Fenced
from headwater.sinks.parquet import files, manifest, merge
from headwater.sinks.parquet.manifest import File, Manifest
from headwater.sinks.parquet.reading import read


def listed(*tiers: int, size: int = 1) -> Manifest:
    return Manifest("id BIGINT", files=tuple(File(f"{n}", 1, size, tier) for n, tier in enumerate(tiers)))


def written(directory: Path, count: int) -> int:
    """Write so many files of two rows, in order; return the epoch."""
    made = manifest.begun(directory, "id BIGINT")
    for number in range(count):
        table = pa.table({"id": [2 * number, 2 * number + 1]})
        file = files.write(directory, f"{number:012}", table.to_batches(), table.schema, 0)
        made = replace(made, files=(*made.files, file))
    manifest.store(directory, made)
    return made.epoch


@given(st.lists(st.integers(0, 2), max_size=40).map(lambda tiers: sorted(tiers, reverse=True)))
def test_the_newest_of_one_tier_are_due_when_they_are_enough(tiers: list[int]) -> None:
    tail = tiers.count(tiers[-1]) if tiers else 0
    found = merge.due(listed(*tiers))
    assert len(found) == (tail if tail >= merge.FILES else 0)
    assert found == listed(*tiers).files[len(tiers) - len(found) :]


def test_a_file_that_would_be_too_large_is_not_made() -> None:
    tiers = [0] * merge.FILES
    assert merge.due(listed(*tiers, size=merge.MOST_BYTES // merge.FILES))
    assert merge.due(listed(*tiers, size=merge.MOST_BYTES // merge.FILES + 1)) == ()


def test_merging_changes_neither_rows_nor_order_and_readers_may_finish(tmp_path: Path) -> None:
    epoch = written(tmp_path, merge.FILES + 1)
    before = {path.name for path in tmp_path.glob("*.parquet")}
    merge.merge(tmp_path, epoch, keep=3600)
    [file] = manifest.current(tmp_path, epoch).files
    assert (file.rows, file.tier) == (2 * (merge.FILES + 1), 1)
    assert read(tmp_path)["id"].to_pylist() == list(range(2 * (merge.FILES + 1)))
    assert {path.name for path in tmp_path.glob("*.parquet")} == before | {file.name}


def test_what_was_replaced_long_enough_ago_goes(tmp_path: Path) -> None:
    epoch = written(tmp_path, merge.FILES)
    merge.merge(tmp_path, epoch, keep=3600)
    merge.merge(tmp_path, epoch, keep=-1)
    now = manifest.current(tmp_path, epoch)
    assert now.replaced == ()
    assert [path.name for path in tmp_path.glob("*.parquet")] == [now.files[0].name]


def test_a_runner_that_was_replaced_merges_nothing(tmp_path: Path) -> None:
    epoch = written(tmp_path, merge.FILES)
    newer = manifest.begun(tmp_path, "id BIGINT")
    with pytest.raises(Fenced):
        merge.merge(tmp_path, epoch, keep=-1)
    assert manifest.current(tmp_path, newer.epoch) == newer
