"""Where a node's rows go, before their columns are known."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from headwater.errors import HeadwaterError
from headwater.pipeline.sink_target import SinkTarget, TableName
from headwater.pipeline.targets import (
    cache,
    database,
    foreach,
    parquet,
    postgres,
    search,
    sqlite,
    warehouse,
)
from headwater.schema import parse
from headwater.sinks import Batch, Sink
from headwater.sinks import search as index
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


def test_an_index_in_a_directory_is_written_and_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    target = search("file:./index", key="item", text=["item"])
    monkeypatch.chdir("/")
    commit(target)
    with index.open(tmp_path / "index") as opened:
        assert [row["n"] for row in opened.search("tea")] == [1]
    assert target.table_names() == [TableName(str(tmp_path / "index"), str(tmp_path / "index"))]


def test_servers_are_named_without_who_connects_and_not_reached_by_a_check() -> None:
    url = "opensearch://shop:secret@127.0.0.1:1/customers"
    on_server = search(url, key="item", text="item")
    cached = cache("redis://shop:secret@127.0.0.1:1/3", key="item", prefix="customer:", ttl="1 hour")
    for target in (on_server, cached):
        target.check(COLUMNS)
        assert "secret" not in repr(target) + str(target.table_names())
    assert on_server.table_names() == [TableName("127.0.0.1:1", "customers")]
    assert cached.table_names() == [TableName("127.0.0.1:1/3", "customer:", is_prefix=True)]


def test_what_an_index_or_a_cache_cannot_be_is_refused_when_it_is_declared_or_checked() -> None:
    for declare in (
        lambda: search("opensearch://host", key="item", text="item"),
        lambda: search("file:index", key="item", text="n").check(COLUMNS),
        lambda: search("opensearch://host/index", key="itm", text="item").check(COLUMNS),
        lambda: cache("http://host", key="item", prefix="a:"),
        lambda: cache("redis://host", key="item", prefix=""),
        lambda: cache("redis://host", key="item", prefix="a:", ttl="soon"),
        lambda: cache("redis://host", key="itm", prefix="a:").check(COLUMNS),
    ):
        with pytest.raises(HeadwaterError):
            declare()


def test_a_warehouse_is_found_from_where_it_was_declared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    target = warehouse("customers", key="item")
    monkeypatch.chdir("/")
    target.check(COLUMNS)
    assert target.table_names() == [TableName(str(tmp_path / "customers"), str(tmp_path / "customers"))]
    assert isinstance(target.open(COLUMNS), Sink)
    with pytest.raises(HeadwaterError, match="valid_to"):
        target.check(parse("item STRING, valid_to DATE"))
