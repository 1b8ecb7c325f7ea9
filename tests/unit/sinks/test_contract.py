"""Sinks against the public suite; views are in tests/contract, those with a server in tests/integration."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from headwater import schema as schemas
from headwater.log.embedded import EmbeddedLog
from headwater.sinks import parquet, search
from headwater.sinks.foreach import ForeachSink
from headwater.sinks.owning import OwningSink
from headwater.sinks.parquet import ParquetSink, merge
from headwater.sinks.search import SearchSink
from headwater.sinks.sink import Sink
from headwater.sinks.topic import TopicSink
from headwater.testing.sink_suite import KEY, SCHEMA, Check, TargetUnderTest, checks
from headwater.views import open_views
from headwater.views.sqlite.table_sink import SqliteTableSink
from sink_kit import named, saved


def topic_target(path: Path, compacted: bool) -> TargetUnderTest:
    def opened() -> Sink:
        log = EmbeddedLog(path / "log")
        return OwningSink(TopicSink(log, "rows", "node"), log)

    def visible() -> list[dict[str, Any]]:
        with EmbeddedLog(path / "log") as log:
            rows = [row for batch in log.read("rows") for row in batch.to_pylist()]
        if not compacted:
            return rows
        newest = {row["k"]: row for row in rows}
        return [row for row in newest.values() if not row["_deleted"]]

    with EmbeddedLog(path / "log") as log:
        log.create_topic("rows", SCHEMA, key=KEY, cleanup="compact" if compacted else "delete")
    return TargetUnderTest(opened, visible, partial(saved, path / "log"), keyed=compacted)


def parquet_target(path: Path) -> TargetUnderTest:
    def visible() -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = parquet.read(path / "rows").to_pylist()
        return rows

    ParquetSink(path / "rows", SCHEMA).begin()
    opened = partial(ParquetSink, path / "rows", SCHEMA)
    return TargetUnderTest(opened, visible, partial(saved, path / "rows"), keyed=False)


def search_target(path: Path) -> TargetUnderTest:
    """An index, and what lies in it; its words are those of the rows, or SQLite says so."""
    opened = partial(SearchSink, path / "index", SCHEMA, KEY, ["k", "note"])

    def visible() -> list[dict[str, Any]]:
        with closing(sqlite3.connect(path / "index" / "index.db")) as db:
            db.execute("INSERT INTO words (words, rank) VALUES ('integrity-check', 1)")
            db.rollback()
        with search.open(path / "index") as index:
            return index.search("k* OR new*", limit=1000)

    with opened() as sink:
        sink.begin()
    return TargetUnderTest(opened, visible, partial(saved, path / "index"))


def table_target(path: Path) -> TargetUnderTest:
    """A table in an SQLite file of its own."""
    file = path / "shop" / "rows.db"

    def visible() -> list[dict[str, Any]]:
        with open_views(file) as views:
            return views["rows"].scan().to_pylist()

    opened = partial(SqliteTableSink, file, "rows", schemas.parse(SCHEMA), KEY)
    return TargetUnderTest(opened, visible, partial(saved, path / "shop"))


def foreach_target(path: Path) -> TargetUnderTest:
    """A function that appends lines to a file: it has the rows of a batch once for each call."""
    lines = path / "rows.jsonl"
    lines.touch()

    def append(rows: pa.Table, batch: int) -> None:
        with open(lines, "a") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows.to_pylist())

    return TargetUnderTest(
        lambda: ForeachSink(append), lambda: map(json.loads, lines.read_text().splitlines()), keyed=False
    )


@pytest.mark.slow
@pytest.mark.parametrize("compacted", [False, True], ids=["every row", "by key"])
@pytest.mark.parametrize("check", checks(), ids=named)
def test_a_topic_is_effectively_once(check: Check, compacted: bool, tmp_path: Path) -> None:
    check(topic_target(tmp_path, compacted))


@pytest.mark.parametrize("check", checks(), ids=named)
def test_parquet_files_are_effectively_once(
    check: Check, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(merge, "FILES", 3)  # so that merging is among the steps
    check(parquet_target(tmp_path))


@pytest.mark.slow
@pytest.mark.parametrize("check", checks(), ids=named)
def test_an_embedded_index_is_effectively_once(check: Check, tmp_path: Path) -> None:
    check(search_target(tmp_path))


@pytest.mark.parametrize("check", checks(), ids=named)
def test_a_table_in_an_sqlite_file_is_effectively_once(check: Check, tmp_path: Path) -> None:
    check(table_target(tmp_path))


@pytest.mark.parametrize("check", checks(exactly_once=False), ids=named)
def test_a_function_sees_rows_at_least_once(check: Check, tmp_path: Path) -> None:
    check(foreach_target(tmp_path))
