"""``headwater export``, and back by ``headwater import``."""

from __future__ import annotations

import importlib
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from tests.unit.cli.conftest import Run
from tests.unit.cli.contents import rows

from headwater import Log

export_command = importlib.import_module("headwater.cli.commands.topics.export")


@pytest.fixture
def hundred(orders: Log) -> Log:
    with orders.producer("orders") as producer:
        producer.send_batch([{"id": n, "item": f"item {n}"} for n in range(100)])
    return orders


def test_an_exported_topic_can_be_imported(run: Run, hundred: Log, tmp_path: Path) -> None:
    assert run("export", "orders", "o.parquet").stdout.startswith("100 rows, ")
    hundred.create_topic("copy", "id BIGINT NOT NULL, item STRING, at TIMESTAMP")
    result = run("import", "copy", "o.parquet")
    assert result.stdout.startswith("100 rows in ")
    assert rows(hundred, "copy", "item") == rows(hundred, "orders", "item")


def test_from_and_to_cut_a_part_out(run: Run, hundred: Log, tmp_path: Path) -> None:
    run("export", "orders", "o.parquet", "--from", 10, "--to", 20)
    assert pq.read_table(tmp_path / "o.parquet")["id"].to_pylist() == list(range(10, 20))


def test_meta_is_exported_on_request_and_left_out_by_import(run: Run, hundred: Log, tmp_path: Path) -> None:
    run("export", "orders", "o.parquet", "--meta", "--to", 3)
    assert pq.read_table(tmp_path / "o.parquet")["_offset"].to_pylist() == [0, 1, 2]
    assert run("import", "orders", "o.parquet").exit_code == 0
    assert rows(hundred, "orders", "_offset")[-1] == 102


def test_small_batches_become_one_row_group(run: Run, orders: Log, tmp_path: Path) -> None:
    for number in range(5):
        run("produce", "orders", input=f'{{"id": {number}}}\n')
    run("export", "orders", "o.parquet")
    assert pq.ParquetFile(tmp_path / "o.parquet").num_row_groups == 1


def test_an_export_that_fails_leaves_the_old_file_and_no_other(
    run: Run, hundred: Log, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "o.parquet").write_text("old")
    monkeypatch.setattr(export_command, "_row_groups", lambda *_: 1 / 0)
    assert run("export", "orders", "o.parquet").exit_code == 1
    assert (tmp_path / "o.parquet").read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data", "o.parquet"]


def test_a_place_that_cannot_be_written_is_an_error(run: Run, orders: Log) -> None:
    result = run("export", "orders", "/proc/o.parquet")
    assert result.stderr.startswith('error: cannot write "/proc/o.parquet"\ndetail: ')


def test_a_name_that_does_not_end_in_parquet_is_refused(run: Run, orders: Log, tmp_path: Path) -> None:
    result = run("export", "orders", "out.csv")
    assert result.exit_code == 2
    assert "headwater consume orders --format csv > out.csv" in result.stderr
    assert not (tmp_path / "out.csv").exists()


def test_an_empty_topic_is_exported_as_an_empty_file_with_its_schema(
    run: Run, orders: Log, tmp_path: Path
) -> None:
    run("export", "orders", "o.parquet")
    assert pq.read_table(tmp_path / "o.parquet").schema.names == ["id", "item", "at"]
