"""Directories of Parquet files: what is listed, merged, left over and refused."""

from __future__ import annotations

import threading
import time
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from headwater import Position
from headwater.errors import Fenced, RowError, SchemaError, SinkRefused, SinkUnavailable, UsageError
from headwater.sinks import Batch, parquet
from headwater.sinks.parquet import ParquetSink, manifest, merge


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64())})


def files(directory: Path) -> set[str]:
    return {path.name for path in directory.glob("*.parquet")}


def test_rows_are_read_in_the_order_of_their_batches_with_how_far_they_go(tmp_path: Path) -> None:
    with ParquetSink(tmp_path, "id BIGINT") as sink:
        sink.begin()
        sink.commit(Batch(3, rows(3, 1)))
        sink.commit(Batch(7, rows(2), (Position("orders", {0: 9}),), 5))
    assert parquet.read(tmp_path)["id"].to_pylist() == [3, 1, 2]
    assert parquet.dataset(tmp_path).to_table(filter=pc.field("id") > 2)["id"].to_pylist() == [3]
    described = parquet.describe(tmp_path)
    assert (described.batch, described.positions, described.clock) == (7, (Position("orders", {0: 9}),), 5)


def test_every_type_comes_back(tmp_path: Path) -> None:
    schema = "a DECIMAL(38,5), b MAP<STRING, ARRAY<INT>>, c STRUCT<x: BINARY>, d VARIANT, e TIMESTAMP_NTZ"
    row = {"a": Decimal("1.50000"), "b": [("k", [1, None])], "c": {"x": b"\0"}, "d": "{}", "e": None}
    with ParquetSink(tmp_path, schema) as sink:
        sink.begin()
        given = {"a": pa.decimal128(38, 5), "b": pa.map_(pa.string(), pa.list_(pa.int32())),
                 "c": pa.struct([("x", pa.binary())]), "d": pa.string(), "e": pa.timestamp("us")}  # fmt: skip
        sink.commit(Batch(0, pa.table({name: pa.array([row[name]], kind) for name, kind in given.items()})))
    assert parquet.read(tmp_path).to_pylist() == [row]


def test_nothing_committed_is_an_empty_table_of_the_schema(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no Parquet sink"):
        parquet.read(tmp_path)
    ParquetSink(tmp_path, "id BIGINT").begin()
    assert parquet.read(tmp_path).schema.names == ["id"]
    assert parquet.read(tmp_path).num_rows == 0


def test_deletions_are_kept_as_a_column_from_the_first_one_on(tmp_path: Path) -> None:
    with ParquetSink(tmp_path, "id BIGINT") as sink:
        sink.begin()
        sink.commit(Batch(0, rows(1)))
        sink.commit(Batch(1, rows(1).append_column("_deleted", pa.array([True]))))
    expected = [{"id": 1, "_deleted": None}, {"id": 1, "_deleted": True}]
    assert parquet.read(tmp_path).to_pylist() == expected


def test_small_files_are_merged_and_the_old_ones_go_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(merge, "FILES", 4)
    with ParquetSink(tmp_path, "id BIGINT", keep="50 milliseconds") as sink:
        sink.begin()
        for number in range(64 + 3):
            before = files(tmp_path)
            sink.commit(Batch(number, rows(number)))
            assert before or number == 0
        listed = parquet.describe(tmp_path).files
        assert [file.rows for file in listed] == [64, 1, 1, 1]
        assert parquet.read(tmp_path)["id"].to_pylist() == list(range(67))
        time.sleep(0.06)
        sink.commit(Batch(67, rows(67)))
        time.sleep(0.06)
        sink.commit(Batch(68, rows(68)))
    described = parquet.describe(tmp_path)
    assert [file.rows for file in described.files] == [64, 4, 1]
    assert files(tmp_path) == {file.name for file in described.files}


def test_a_reader_that_has_begun_finishes_while_files_are_merged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(merge, "FILES", 2)
    with ParquetSink(tmp_path, "id BIGINT") as sink:
        sink.begin()
        sink.commit(Batch(0, rows(0)))
        begun = parquet.dataset(tmp_path)
        for number in range(1, 8):
            sink.commit(Batch(number, rows(number)))
        assert begun.to_table()["id"].to_pylist() == [0]


def test_readers_see_whole_batches_while_a_runner_commits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(merge, "FILES", 3)
    with ParquetSink(tmp_path, "id BIGINT", keep="1 millisecond") as sink:
        sink.begin()
        runner = threading.Thread(target=lambda: [sink.commit(Batch(n, rows(*[n] * 10))) for n in range(60)])
        runner.start()
        while runner.is_alive():
            seen = parquet.read(tmp_path)["id"].to_pylist()
            assert seen == [n for n in range(len(seen) // 10) for _ in range(10)]
        runner.join()
    assert parquet.read(tmp_path).num_rows == 600


def test_what_a_crash_has_left_is_removed_by_the_next_runner(tmp_path: Path) -> None:
    ParquetSink(tmp_path, "id BIGINT").begin()
    for name in (
        ".draft-1.parquet",
        "000000000001-dead.parquet",
        ".headwater.json-1",
        f".1.parquet-{'a' * 32}",
        "notes.txt",
    ):
        (tmp_path / name).touch()
    ParquetSink(tmp_path, "id BIGINT").begin()
    assert {path.name for path in tmp_path.iterdir()} == {"notes.txt", manifest.NAME, manifest.LOCK}


def test_an_older_runner_is_fenced_and_told_so(tmp_path: Path) -> None:
    first, second = ParquetSink(tmp_path, "id BIGINT"), ParquetSink(tmp_path, "id BIGINT")
    first.begin()
    second.begin()
    with pytest.raises(Fenced, match="another runner has taken over directory"):
        first.commit(Batch(0, rows(1)))
    assert files(tmp_path) == set()


def test_a_runner_that_holds_the_lock_for_ever_is_not_waited_for_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(manifest, "_LOCK_SECONDS", 0.05)
    with manifest.locked(tmp_path), pytest.raises(SinkUnavailable, match="is locked by another process"):
        ParquetSink(tmp_path, "id BIGINT").begin()


def test_what_does_not_fit_is_refused_and_nothing_written(tmp_path: Path) -> None:
    sink = ParquetSink(tmp_path, "id BIGINT NOT NULL")
    with pytest.raises(UsageError, match="has not begun"):
        sink.commit(Batch(0, rows(1)))
    sink.begin()
    for table in (pa.table({"id": [None]}), pa.table({"id": ["x"]}), pa.table({"ib": [1]})):
        with pytest.raises(RowError):
            sink.commit(Batch(0, table))
    assert files(tmp_path) == set()
    with pytest.raises(SchemaError, match="holds other columns"):
        ParquetSink(tmp_path, "id INT").begin()


def test_a_place_that_cannot_be_used_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SinkUnavailable, match="cannot be used"):
        ParquetSink(tmp_path / "file", "id BIGINT").begin()
    (tmp_path / manifest.NAME).write_text("{")
    with pytest.raises(SinkUnavailable, match="cannot be read"):
        ParquetSink(tmp_path, "id BIGINT").begin()
    (tmp_path / manifest.NAME).write_text('{"format": 99}')
    with pytest.raises(SinkUnavailable, match="newer Headwater"):
        parquet.read(tmp_path)


def test_a_file_that_somebody_has_removed_is_missed_at_the_start(tmp_path: Path) -> None:
    sink = ParquetSink(tmp_path, "id BIGINT")
    sink.begin()
    for number in range(2):
        sink.commit(Batch(number, rows(1)))
    next(tmp_path.glob("*.parquet")).unlink()
    with pytest.raises(SinkRefused, match="is gone"):
        ParquetSink(tmp_path, "id BIGINT").begin()


def test_a_manifest_that_somebody_has_removed_is_missed_at_the_next_commit(tmp_path: Path) -> None:
    sink = ParquetSink(tmp_path, "id BIGINT")
    sink.begin()
    sink.commit(Batch(0, rows(1)))
    (tmp_path / manifest.NAME).unlink()
    with pytest.raises(SinkRefused, match="is gone"):
        sink.commit(Batch(1, rows(1)))
