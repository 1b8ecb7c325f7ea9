"""A Delta Lake table: the public suite, its history, who may write, and what repeated batches come to."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from hypothesis import given, settings
from hypothesis import strategies as st

import warehouse_suite
from headwater import Position, durations
from headwater.errors import Fenced, RowError, SchemaError, SinkRefused, UsageError
from headwater.sinks import Batch, crash
from headwater.sinks.warehouse import sink as warehouse
from headwater.sinks.warehouse.sink import WarehouseSink
from headwater.testing.sink_suite import checks
from repeated_batches import AGAIN, BATCHES, Changes, committed, rows

pytestmark = pytest.mark.slow

COLUMNS = "id BIGINT NOT NULL, name STRING"


def opened(directory: Path, history: bool = True) -> WarehouseSink:
    return WarehouseSink(directory, COLUMNS, "id", history=history)


def stored(directory: Path) -> list[dict[str, Any]]:
    table: list[dict[str, Any]] = DeltaTable(directory).to_pyarrow_table().to_pylist()
    return table


def current(directory: Path) -> dict[int, str]:
    found = [row for row in stored(directory) if row.get("is_current", True)]
    assert len({row["id"] for row in found}) == len(found)
    return {row["id"]: row["name"] for row in found}


@pytest.mark.parametrize("variant", ["history", "current"])
def test_a_table_is_effectively_once(variant: str, tmp_path: Path) -> None:
    command = [sys.executable, warehouse_suite.__file__, variant, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == len(checks())


def test_each_version_of_a_row_has_its_time_and_one_is_current(tmp_path: Path) -> None:
    before = durations.now()
    with opened(tmp_path) as sink:
        sink.begin()
        sink.commit(Batch(0, rows((1, "Ada"), (2, "Grace"))))
        sink.commit(Batch(1, rows((1, "Ada"), (2, "Grace H."))))  # Ada is as she was
        sink.commit(Batch(2, rows((1, None))))
        sink.commit(Batch(3, rows((1, "never"), (1, "Ada L."))))
    versions = sorted(stored(tmp_path), key=lambda row: (row["id"], row["valid_from"]))
    assert [(row["id"], row["name"], row["is_current"]) for row in versions] == [
        (1, "Ada", False), (1, "Ada L.", True), (2, "Grace", False), (2, "Grace H.", True),
    ]  # fmt: skip
    ada, ada_again, grace, grace_h = versions
    assert before <= durations.micros(ada["valid_from"]) < durations.micros(ada["valid_to"])
    assert ada["valid_to"] < ada_again["valid_from"]  # she was not there for a while
    assert grace["valid_to"] == grace_h["valid_from"]
    assert grace_h["valid_to"] is None


def test_times_grow_though_the_clock_is_set_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(tmp_path) as sink:
        sink.begin()
        sink.commit(Batch(0, rows((1, "a"))))
        monkeypatch.setattr(durations, "now", lambda: 7)
        sink.commit(Batch(1, rows((1, "b"))))
    old, new = sorted(stored(tmp_path), key=lambda row: row["valid_from"])
    assert (old["name"], new["name"]) == ("a", "b")
    assert old["valid_from"] < old["valid_to"] == new["valid_from"]


def test_how_far_it_goes_is_in_the_commit(tmp_path: Path) -> None:
    with opened(tmp_path, history=False) as sink:
        sink.begin()
        sink.commit(Batch(7, rows((1, "a")), (Position("people", {0: 5}),), 9))
    (entry,) = DeltaTable(tmp_path).history(1)
    about = json.loads(entry["headwater"])
    assert (Position.parse(about["positions"][0]), about["clock"]) == (Position("people", {0: 5}), 9)
    assert DeltaTable(tmp_path).transaction_version("headwater.batch") == 7


def test_a_runner_that_is_replaced_after_its_look_at_the_table_commits_nothing(tmp_path: Path) -> None:
    with opened(tmp_path) as first, opened(tmp_path) as second:
        first.begin()
        crash.watch(lambda name: second.begin() if name == "warehouse: compared" else None)
        try:
            with pytest.raises(Fenced, match="taken over"):
                first.commit(Batch(0, rows((1, "first"))))
        finally:
            crash.watch(None)
        assert second.commit(Batch(0, rows((1, "second"))))
    assert current(tmp_path) == {1: "second"}


def test_maintenance_by_others_is_no_reason_to_stop(tmp_path: Path) -> None:
    with opened(tmp_path) as sink:
        sink.begin()
        for number in range(4):
            sink.commit(Batch(number, rows((number, "a"))))
        crash.watch(lambda name: DeltaTable(tmp_path).optimize.compact() if "compared" in name else None)
        try:
            assert sink.commit(Batch(4, rows((0, "b"))))
        finally:
            crash.watch(None)
    assert current(tmp_path) == {0: "b", 1: "a", 2: "a", 3: "a"}


def test_small_files_become_larger_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warehouse, "COMPACT", 10)
    with opened(tmp_path, history=False) as sink:
        sink.begin()
        for number in range(10):
            sink.commit(Batch(number, rows((number, "a"))))
    assert len(DeltaTable(tmp_path).file_uris()) == 1


def test_the_table_is_read_by_duckdb(tmp_path: Path) -> None:
    with opened(tmp_path) as sink:
        sink.begin()
        sink.commit(Batch(0, rows((1, "a"), (2, "b"))))
        sink.commit(Batch(1, rows((1, "c"))))
    customers = DeltaTable(tmp_path).to_pyarrow_table()
    assert duckdb.sql("SELECT id, name FROM customers WHERE is_current ORDER BY id").fetchall() == [
        (1, "c"),
        (2, "b"),
    ]
    assert customers.num_rows == 3


def test_tables_that_are_not_ours_or_hold_other_columns_or_lack_a_file_are_refused(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "other", pa.table({"id": [1]}))
    with opened(tmp_path / "other") as sink, pytest.raises(SinkRefused, match="not made by Headwater"):
        sink.begin()
    with opened(tmp_path / "own") as sink:
        with pytest.raises(UsageError, match="not begun"):
            sink.commit(Batch(0, rows()))
        sink.begin()
        sink.commit(Batch(0, rows((1, "a"))))
    with opened(tmp_path / "own", history=False) as sink, pytest.raises(SchemaError, match="other columns"):
        sink.begin()
    (file,) = DeltaTable(tmp_path / "own").file_uris()
    Path(file).unlink()
    with opened(tmp_path / "own") as sink, pytest.raises(SinkRefused, match="is gone"):
        sink.begin()


def test_a_row_that_does_not_fit_writes_nothing(tmp_path: Path) -> None:
    with opened(tmp_path) as sink:
        sink.begin()
        with pytest.raises(RowError):
            sink.commit(Batch(0, pa.table({"id": pa.array([1, None], pa.int64()), "name": ["a", "b"]})))
    assert stored(tmp_path) == []


@settings(deadline=None, max_examples=12)
@given(batches=BATCHES, again=AGAIN, history=st.booleans())
def test_batches_that_are_repeated_come_to_a_dictionary(
    batches: list[Changes], again: list[int], history: bool
) -> None:
    with tempfile.TemporaryDirectory() as folder, opened(Path(folder), history) as sink:
        expected = committed(sink, batches, again)
        assert current(Path(folder)) == expected
