"""Parquet files appear whole, and what a crash has left goes."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headwater import durable
from headwater.errors import HeadwaterError
from headwater.sinks import crash
from headwater.sinks.parquet import files
from headwater.sinks.parquet.manifest import File, Manifest

ROWS = pa.table({"id": [1, 2, 3]})


def written(directory: Path) -> File:
    return files.write(directory, "batch", ROWS.to_batches(), ROWS.schema, 0)


def manifest(*named: File) -> Manifest:
    return Manifest("id BIGINT", files=named)


def test_a_file_holds_its_rows_and_tells_its_size(tmp_path: Path) -> None:
    file = written(tmp_path)
    assert pq.read_table(tmp_path / file.name)["id"].to_pylist() == [1, 2, 3]
    assert (file.rows, file.bytes) == (3, (tmp_path / file.name).stat().st_size)


def test_before_it_is_whole_a_file_has_the_name_of_a_draft(tmp_path: Path) -> None:
    seen: dict[str, list[Path]] = {}
    crash.watch(lambda point: seen.update({point: list(tmp_path.iterdir())}))
    file = written(tmp_path)
    crash.watch(None)
    assert [durable.is_draft(path) for path in seen["parquet: file drafted"]] == [True]
    assert seen["parquet: file there"] == [tmp_path / file.name]


def test_a_file_that_the_manifest_names_and_that_is_gone_is_an_error(tmp_path: Path) -> None:
    file = written(tmp_path)
    files.check(tmp_path, manifest(file))
    (tmp_path / file.name).unlink()
    with pytest.raises(HeadwaterError):
        files.check(tmp_path, manifest(file))


def test_what_nobody_names_is_removed_and_what_readers_may_be_at_is_kept(tmp_path: Path) -> None:
    named, replaced, left = written(tmp_path), written(tmp_path), written(tmp_path)
    (tmp_path / f".x-{'0' * 32}").touch()
    (tmp_path / "README").touch()
    files.tidy(tmp_path, Manifest("id BIGINT", files=(named,), replaced=((replaced.name, 0.0),)))
    assert {path.name for path in tmp_path.iterdir()} == {named.name, replaced.name, "README"}
    assert left.name not in {path.name for path in tmp_path.iterdir()}
