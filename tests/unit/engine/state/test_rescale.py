"""A state in another number of buckets; that results stay the same is in ``tests/unit/operators``."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from headwater.engine.files.local_files import LocalFiles
from headwater.engine.stage.bucket_step import StepContext, step_in_driver
from headwater.engine.state.bucket import BucketMeta
from headwater.engine.state.rescale import Rescaling
from headwater.operators.latest import Latest
from headwater.operators.memory.redistribution import LOGGED_BYTES
from headwater.schema import parse

SCHEMA = parse("who BIGINT, text STRING, at TIMESTAMP")
LATEST = Latest(("who",), "at")


def state(home: Path, rows: int, count: int) -> dict[int, BucketMeta]:
    who = np.arange(rows)
    table = pa.table([pa.array(who), pa.array([f"{n:0100}" for n in who]), pa.array(who)], names=SCHEMA.names)
    context = StepContext("node", LATEST, SCHEMA, LocalFiles(home), count=count)
    return {done.bucket: done.meta for done in step_in_driver(context, table.cast(SCHEMA))}


def rows_of(home: Path, buckets: dict[int, BucketMeta]) -> list[int]:
    found = []
    rescaling = Rescaling(LATEST, SCHEMA, LocalFiles(home))
    for meta in buckets.values():
        found += rescaling._opened(meta.memory).rows()["who"].to_pylist()
    return sorted(found)


@pytest.mark.parametrize("rows", [50, 30_000])
def test_every_row_is_in_one_of_the_new_buckets(tmp_path: Path, rows: int) -> None:
    before = state(tmp_path, rows, 3)
    after = Rescaling(LATEST, SCHEMA, LocalFiles(tmp_path)).run(before, 16)
    assert len(after) == 16
    assert rows_of(tmp_path, after) == list(range(rows))
    assert rows_of(tmp_path, before) == list(range(rows)), "what was there is not touched"


def test_small_buckets_share_one_file_and_large_ones_have_their_own(tmp_path: Path) -> None:
    small = Rescaling(LATEST, SCHEMA, LocalFiles(tmp_path)).run(state(tmp_path, 2_000, 1), 64)
    assert len({chunk.file for meta in small.values() for chunk in meta.stored}) == 1
    large = Rescaling(LATEST, SCHEMA, LocalFiles(tmp_path)).run(state(tmp_path, 30_000, 1), 2)
    assert all(meta.size > LOGGED_BYTES and len(meta.stored) == 1 for meta in large.values())


def test_it_is_told_how_much_has_been_moved(tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    before, size = state(tmp_path, 30_000, 2), 1 << 20
    Rescaling(LATEST, SCHEMA, LocalFiles(tmp_path)).run(before, 3, lambda *each: told.append(each), size)
    assert len(told) > 2 and told == sorted(told)
    assert told[-1] == (30_000, 30_000)


def test_nothing_is_stored_for_no_buckets(tmp_path: Path) -> None:
    assert Rescaling(LATEST, SCHEMA, LocalFiles(tmp_path)).run({}, 4) == {}
    assert list(tmp_path.iterdir()) == []
