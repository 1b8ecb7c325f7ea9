"""``headwater import``: the rows of a Parquet file, each once."""

from __future__ import annotations

import importlib
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.unit.cli.conftest import Run
from tests.unit.cli.contents import rows

from headwater import Log

import_command = importlib.import_module("headwater.cli.commands.topics.import_")


def test_an_interrupted_import_is_finished_by_running_it_again(run: Run, orders: Log, tmp_path: Path) -> None:
    table = pa.table({"id": list(range(100)), "item": ["tea"] * 100})
    pq.write_table(table.slice(0, 40), tmp_path / "o.parquet")
    run("import", "orders", "o.parquet", "--producer", "p")
    pq.write_table(table, tmp_path / "o.parquet")
    result = run("import", "orders", "o.parquet", "--producer", "p")
    assert result.stdout.startswith("60 of 100 rows added, 40 were there already, in ")
    assert rows(orders, "orders", "id") == list(range(100))


def test_a_row_that_does_not_fit_is_named(
    run: Run, orders: Log, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(import_command, "BATCH_ROWS", 4)
    ids = [0, 1, 2, 3, 4, None, 6]
    pq.write_table(pa.table({"id": pa.array(ids, pa.int64())}), tmp_path / "o.parquet")
    result = run("import", "orders", "o.parquet")
    assert result.exit_code == 1
    assert result.stderr.startswith("error: o.parquet, row 6: ")
    assert rows(orders, "orders", "id") == [0, 1, 2, 3, 4]


def test_tombstones_survive_export_and_import(run: Run, log: Log) -> None:
    for name in ("one", "two"):
        log.create_topic(name, "id BIGINT, name STRING", key="id", cleanup="compact")
    with log.producer("one") as producer:
        producer.send({"id": 1, "name": "Ann"})
        producer.delete(1)
        producer.send({"id": 2, "name": "Bo"})
    run("export", "one", "one.parquet")
    assert run("import", "two", "one.parquet").exit_code == 0
    assert rows(log, "two", "_deleted") == rows(log, "one", "_deleted")


def test_a_file_that_is_not_parquet_is_refused(run: Run, orders: Log, tmp_path: Path) -> None:
    (tmp_path / "o.parquet").write_text("id,item\n")
    result = run("import", "orders", "o.parquet")
    assert result.exit_code == 1
    assert result.stderr.startswith('error: "o.parquet" is not a Parquet file\n')


def test_columns_are_matched_by_name_and_those_the_file_lacks_are_null(
    run: Run, orders: Log, tmp_path: Path
) -> None:
    pq.write_table(pa.table({"item": ["tea"], "id": [1]}), tmp_path / "o.parquet")
    assert run("import", "orders", "o.parquet").exit_code == 0
    [row] = rows(orders)
    assert (row["id"], row["item"], row["at"]) == (1, "tea", None)


def test_a_column_that_the_topic_has_not_is_refused(run: Run, orders: Log, tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [1], "itme": ["tea"]}), tmp_path / "o.parquet")
    result = run("import", "orders", "o.parquet")
    assert (result.exit_code, "itme" in result.stderr) == (1, True)
    assert rows(orders) == []
