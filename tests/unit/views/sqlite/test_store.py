"""What is particular about a view store in a SQLite file; the rest is in tests/contract/views."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from headwater import Position
from headwater.errors import SinkUnavailable, UsageError
from headwater.sinks import Batch
from headwater.views import ViewStore, open_views
from headwater.views.sqlite import sink

STOCK = "item STRING, count BIGINT"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ViewStore]:
    with ViewStore(tmp_path / "views.db") as store:
        yield store


def stock(number: int, *, deleted: list[str] | None = None, **counts: int) -> Batch:
    items, gone = [*counts, *(deleted or [])], [False] * len(counts) + [True] * len(deleted or [])
    columns: dict[str, Any] = {"item": items, "count": [*counts.values(), *(None for _ in deleted or [])]}
    rows = pa.table({**columns, "_deleted": gone}, pa.schema(
        [("item", pa.string()), ("count", pa.int64()), ("_deleted", pa.bool_())]
    ))  # fmt: skip
    return Batch(number, rows, (Position("orders", {0: number + 1}),), number * 10)


def contents(store: ViewStore, version: int | None = None) -> dict[str, int]:
    return {row["item"]: row["count"] for row in store.view("stock", version).scan().to_pylist()}


def test_a_batch_of_several_chunks_is_one_commit(store: ViewStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sink, "_CHUNK", 3)
    target = store.sink("stock", STOCK, "item")
    target.begin()
    target.commit(stock(0, **{f"i{n}": n for n in range(10)}))
    target.commit(stock(1, **{f"i{n}": 0 for n in range(10)}, deleted=["i9", "i4"]))
    assert contents(store) == {f"i{n}": 0 for n in range(10) if n not in (9, 4)}
    assert len(list(store.view("stock").changes())) == 10 + 9  # i0 was 0 before, and stays so


def test_a_closed_store_says_so(tmp_path: Path) -> None:
    store = ViewStore(tmp_path / "views.db")
    target = store.sink("stock", STOCK, "item")
    store.close()
    with pytest.raises(UsageError, match="is closed"):
        target.begin()


def test_a_forked_child_opens_the_store_again(store: ViewStore) -> None:
    target = store.sink("stock", STOCK, "item")
    target.begin()
    target.commit(stock(0, tea=1))
    child = os.fork()
    if child == 0:
        try:
            seen = contents(store)  # reading opens a connection of its own
            target.commit(stock(1, tea=2))
        except UsageError:
            os._exit(7 if seen == {"tea": 1} else 1)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


def test_a_store_of_a_newer_format_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "views.db"
    ViewStore(path).close()
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA user_version=99")
    db.close()
    with pytest.raises(SinkUnavailable, match="newer Headwater"):
        ViewStore(path)
    with pytest.raises(SinkUnavailable, match="newer Headwater"), open_views(path) as views:
        views.names()


def test_what_is_no_store_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no view store"):
        open_views(tmp_path / "none.db")
    (tmp_path / "text.db").write_text("this is no database, and was never meant to be one" * 100)
    with pytest.raises(SinkUnavailable, match="cannot be used"):
        ViewStore(tmp_path / "text.db")
    with pytest.raises(SinkUnavailable, match="cannot be used"):
        ViewStore(tmp_path / "text.db" / "below.db")
    with sqlite3.connect(tmp_path / "theirs.db") as db:
        db.execute("CREATE TABLE customers (id INTEGER)")
    db.close()
    for attempt in (ViewStore, lambda path: open_views(path).names()):
        with pytest.raises(SinkUnavailable, match="is a database, but no view store"):
            attempt(tmp_path / "theirs.db")


def test_commits_that_are_left_to_the_operating_system_are_there_too(tmp_path: Path) -> None:
    with ViewStore(tmp_path / "views.db", durability="os") as store:
        target = store.sink("stock", STOCK, "item")
        target.begin()
        target.commit(stock(0, tea=1))
    with open_views(tmp_path / "views.db") as views:
        assert views["stock"].count() == 1
        assert views.names() == ["stock"]


def test_a_durability_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="durability"):
        ViewStore(tmp_path / "views.db", durability="none")  # type: ignore[arg-type]


def test_a_reader_waits_for_a_store_that_another_process_is_just_making(tmp_path: Path) -> None:
    path = tmp_path / "views.db"
    path.touch()  # as it is between SQLite's making the file and its first table
    making = threading.Timer(0.1, lambda: ViewStore(path).close())
    making.start()
    with open_views(path) as views:
        assert views.names() == []
    making.join()
