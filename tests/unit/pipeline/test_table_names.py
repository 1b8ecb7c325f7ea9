"""Nodes whose tables would be the same are found before anything runs, without a database."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pytest

from headwater import Pipeline
from headwater.errors import PipelineError
from headwater.pipeline import targets
from headwater.sinks import parquet as files
from headwater.sinks.sink import Batch

URL = "postgresql://ada:secret@db.example/shop"


def shop(*names: str, views: str | None = URL) -> Pipeline:
    """Declare views of these names."""
    pipeline = Pipeline("shop", views=views)
    pipeline.source("orders", "id BIGINT, total BIGINT")
    for name in names:
        pipeline.sql(name, "SELECT * FROM orders", key="id")
    return pipeline


def sink(pipeline: Pipeline, target: targets.SinkTarget, name: str = "kept") -> None:
    def kept(orders: object) -> object:
        return orders

    kept.__name__ = name
    pipeline.sink(target)(kept)


def told(pipeline: Pipeline) -> str:
    with pytest.raises(PipelineError) as caught:
        pipeline.check()
    assert "secret" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("names", [("totals", "totals_changes"), ("totals_changes", "totals")])
def test_a_view_with_the_name_of_anothers_changes_is_refused(names: tuple[str, str]) -> None:
    assert f'view "{names[1]}" would write to what is view "{names[0]}"\'s' in told(shop(*names))
    shop(*names, views=None).check()  # in SQLite they are apart


def test_views_in_other_databases_are_apart() -> None:
    pipeline = shop("totals", views=None)
    pipeline.sql("totals_changes", "SELECT * FROM orders", key="id", store=URL)
    pipeline.check()


@pytest.mark.parametrize(
    "table", ["totals", "public.totals", "totals_changes", "totals@2", "totals@3_changes"]
)
def test_a_sink_that_writes_to_the_tables_of_a_view_is_refused(table: str) -> None:
    pipeline = shop("totals")
    sink(pipeline, targets.postgres("postgresql://bob@db.example/shop", table, "id"))
    assert 'sink "kept" would write to what is view "totals"\'s' in told(pipeline)


def test_a_table_of_another_name_or_schema_is_apart() -> None:
    pipeline = shop("totals")
    for number, table in enumerate(["archive.totals", "Totals", "totals2"]):
        sink(pipeline, targets.postgres(URL, table, "id"), f"kept{number}")
    pipeline.check()


@pytest.mark.parametrize(
    "target",
    [
        targets.postgres(URL, "stock", "id"),
        targets.sqlite("stock.db", "stock", "id"),
        targets.parquet("stock"),
    ],
    ids=lambda target: target.name,
)
def test_two_sinks_of_one_target_are_refused(target: targets.SinkTarget) -> None:
    pipeline = shop()
    sink(pipeline, target, "one")
    sink(pipeline, target, "two")
    assert "would write to what is sink" in told(pipeline)


@pytest.mark.parametrize("prefixes", [("customer:", "customer:vip:"), ("customer:vip:", "customer:")])
def test_a_cache_under_the_prefix_of_another_is_refused(prefixes: tuple[str, str]) -> None:
    pipeline = shop()
    for number, prefix in enumerate(prefixes):  # building one anew would delete the rows of the other
        sink(pipeline, targets.cache("redis://:secret@cache.example/0", "id", prefix=prefix), f"kept{number}")
    assert 'sink "kept1" would write to what is sink "kept0"\'s' in told(pipeline)


def test_caches_of_other_prefixes_or_databases_are_apart() -> None:
    pipeline = shop()
    for number, (database, prefix) in enumerate([(0, "customer:"), (0, "order:"), (1, "customer:vip:")]):
        url = f"redis://cache.example/{database}"
        sink(pipeline, targets.cache(url, "id", prefix=prefix), f"kept{number}")
    pipeline.check()


def test_a_name_that_the_server_would_cut_is_told_with_its_line() -> None:
    found = told(shop("v" * 48))
    assert "too long for PostgreSQL" in found and "test_table_names.py" in found
    shop("v" * 47).check()


def test_a_target_stays_where_it_was_declared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    declared = targets.parquet("stock"), targets.sqlite("stock.db", "stock", "id")
    os.mkdir("elsewhere")
    monkeypatch.chdir("elsewhere")
    for target in declared:
        with target.open(pa.schema([("id", pa.int64())])) as opened:
            opened.begin()
            opened.commit(Batch(0, pa.table({"id": [1]})))
    assert files.read(tmp_path / "stock").num_rows == 1 and (tmp_path / "stock.db").exists()
    assert os.listdir() == []
