"""Where a node's rows go, before their columns are known."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from headwater.errors import HeadwaterError
from headwater.pipeline.targets import SinkTarget, TableName, database, foreach, parquet, postgres, sqlite
from headwater.schema import parse
from headwater.sinks import Batch
from headwater.sinks.parquet import read
from headwater.views import open_views

COLUMNS = parse("item STRING, n BIGINT")
ROWS = Batch(0, pa.table({"item": ["tea"], "n": [1]}))


def commit(target: SinkTarget) -> None:
    with target.open(COLUMNS) as sink:
        sink.begin()
        sink.commit(ROWS)


def test_a_relative_place_is_that_of_when_the_target_was_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    targets = parquet("archive"), sqlite("shop.db", "stock", "item")
    monkeypatch.chdir(tmp_path / "elsewhere")
    for target in targets:
        commit(target)
    assert read(tmp_path / "archive").to_pylist() == [{"item": "tea", "n": 1}]
    with open_views(tmp_path / "shop.db") as views:
        assert views["stock"].get("tea") == {"item": "tea", "n": 1}


def test_a_function_is_called_with_rows_and_number() -> None:
    called: list[tuple[int, int]] = []
    commit(foreach(lambda rows, number: called.append((rows.num_rows, number))))
    assert called == [(1, 0)]
    assert foreach(print).table_names() == []


def test_a_password_is_not_shown() -> None:
    target = postgres("postgresql://shop:hush@db.example/shop", "public.stock", "item", feed=10)
    assert "hush" not in repr(target)
    assert target.table_names() == [
        TableName("db.example/shop", "stock"),
        TableName("db.example/shop", "stock_changes"),
    ]
    assert database("postgres://ada@db/shop") == database("postgresql://bob:x@db/shop") == "db/shop"


def test_who_writes_to_a_version_of_a_view_writes_to_the_view() -> None:
    target = postgres("postgresql://db/shop", "totals@2_changes", "id")
    assert [each.name for each in target.table_names()] == ["totals@2_changes", "totals"]


def test_columns_are_refused_before_anything_is_made(tmp_path: Path) -> None:
    sqlite(tmp_path / "shop.db", "stock", "item").check(COLUMNS)
    for target in (
        sqlite(tmp_path / "shop.db", "stock", "itme"),
        postgres("postgresql://nowhere.invalid/shop", "stock", "itme"),
    ):
        with pytest.raises(HeadwaterError, match="itme"):
            target.check(COLUMNS)
    assert list(tmp_path.iterdir()) == []
