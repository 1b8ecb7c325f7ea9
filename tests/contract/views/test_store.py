"""Commits, versions and epochs of a view store."""

from __future__ import annotations

import sqlite3
from typing import Any

import psycopg
import pyarrow as pa
import pytest
from psycopg.sql import SQL, Identifier
from tests.contract.views.conftest import Reopen

from headwater import Position
from headwater.errors import Fenced, RowError, SchemaError, SinkRefused, TopicError, UsageError
from headwater.sinks import Batch
from headwater.views import Store
from headwater.views.sqlite import catalog

STOCK = "item STRING, count BIGINT"


def stock(number: int, *, deleted: list[str] | None = None, **counts: int) -> Batch:
    items, gone = [*counts, *(deleted or [])], [False] * len(counts) + [True] * len(deleted or [])
    columns: dict[str, Any] = {"item": items, "count": [*counts.values(), *(None for _ in deleted or [])]}
    rows = pa.table({**columns, "_deleted": gone}, pa.schema(
        [("item", pa.string()), ("count", pa.int64()), ("_deleted", pa.bool_())]
    ))  # fmt: skip
    return Batch(number, rows, (Position("orders", {0: number + 1}),), number * 10)


def contents(store: Store, version: int | None = None) -> dict[str, int]:
    return {row["item"]: row["count"] for row in store.view("stock", version).scan().to_pylist()}


def test_a_commit_stores_rows_positions_and_clock_together(store: Store) -> None:
    with store.sink("stock", STOCK, "item") as sink:
        assert sink.begin() == -1
        assert sink.commit(stock(3, tea=1, rum=2))
        assert sink.commit(stock(4, tea=5, deleted=["rum", "never"]))
    view = store.view("stock")
    assert contents(store) == {"tea": 5}
    assert view.position() == (Position("orders", {0: 5}),)
    assert view.watermark() == 40


def test_a_view_may_be_nothing_but_its_key(store: Store) -> None:
    target = store.sink("seen", "id BIGINT", "id")
    target.begin()
    for number in range(2):
        target.commit(Batch(number, pa.table({"id": [1, 2]})))
    target.commit(Batch(2, pa.table({"id": [1], "_deleted": [True]})))
    assert store.view("seen").scan().to_pylist() == [{"id": 2}]
    assert [change.kind for change in store.view("seen").changes()] == ["insert", "insert", "delete"]


def test_a_bad_row_leaves_everything_as_it_was(store: Store) -> None:
    target = store.sink("stock", STOCK, "item")
    target.begin()
    target.commit(stock(0, tea=1))
    with pytest.raises(RowError, match="is null"):
        target.commit(Batch(1, pa.table({"item": ["rum", None], "count": [1, 2]})))
    assert contents(store) == {"tea": 1}
    assert target.commit(stock(1, rum=2))


def test_an_older_runner_is_fenced_and_told_so(store: Store) -> None:
    first, second = store.sink("stock", STOCK, "item"), store.sink("stock", STOCK, "item")
    first.begin()
    second.begin()
    with pytest.raises(Fenced, match='another runner has taken over view "stock"'):
        first.commit(stock(0, tea=1))
    with pytest.raises(Fenced):
        first.commit(stock(-1))
    assert second.commit(stock(0, tea=2))


def test_a_sink_begins_before_it_commits(store: Store) -> None:
    with pytest.raises(UsageError, match="has not begun"):
        store.sink("stock", STOCK, "item").commit(stock(0))


def test_a_rebuild_is_written_beside_what_readers_see_until_it_is_published(store: Store) -> None:
    old = store.sink("stock", STOCK, "item")
    old.begin()
    old.commit(stock(5, tea=1))
    new = store.sink("stock", STOCK + ", note STRING", "item", version=2)
    assert new.begin() == -1
    new.commit(Batch(0, pa.table({"item": ["tea"], "count": [2], "note": ["new"]})))
    view = store.view("stock")
    assert (view.get("tea"), view.version) == ({"item": "tea", "count": 1}, 1)
    assert contents(store, version=2) == {"tea": 2}
    old.commit(stock(6, tea=3))
    store.publish("stock", 2)
    assert (view.get("tea"), view.version) == ({"item": "tea", "count": 2, "note": "new"}, 2)
    assert store.versions("stock") == {1: False, 2: True}
    store.drop("stock", 1)
    with pytest.raises(Fenced, match="has been dropped"):
        old.commit(stock(7, tea=4))


def test_a_runner_goes_on_with_the_published_version(store: Store) -> None:
    store.sink("stock", STOCK, "item")
    store.sink("stock", "item STRING", "item", version=4)
    store.publish("stock", 4)
    assert store.sink("stock", "item STRING", "item").version == 4


def test_the_published_version_is_not_dropped_but_the_view_may_be(store: Store) -> None:
    store.sink("stock", STOCK, "item")
    store.sink("stock", STOCK, "item", version=2)
    with pytest.raises(UsageError, match="is published"):
        store.drop("stock", 1)
    store.drop("stock")
    with pytest.raises(UsageError, match='no view "stock"'):
        store.view("stock")
    with pytest.raises(UsageError, match='no view "stock"'):
        store.drop("stock")


def test_a_version_keeps_its_columns_and_key(store: Store) -> None:
    store.sink("stock", STOCK, "item")
    for schema, key in (("item STRING, count INT", "item"), (STOCK, ("item", "count"))):
        with pytest.raises(SchemaError, match="build version 2"):
            store.sink("stock", schema, key)


@pytest.mark.parametrize("arguments", [{"version": 0}, {"version": "1"}, {"feed": 0}])
def test_what_cannot_be_meant_is_refused(store: Store, arguments: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        store.sink("stock", STOCK, "item", **arguments)
    with pytest.raises(TopicError, match="invalid view name"):
        store.sink("a b", STOCK, "item")


def test_unknown_views_and_versions_are_answered_with_what_there_is(store: Store) -> None:
    store.sink("stock", STOCK, "item")
    with pytest.raises(UsageError, match='did you mean "stock"'):
        store.view("stok")
    with pytest.raises(UsageError, match="versions: 1"):
        store.publish("stock", 3)


def test_a_failure_in_the_middle_of_a_commit_leaves_everything_as_it_was(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = store.sink("stock", STOCK, "item")
    target.begin()
    target.commit(stock(0, tea=1))

    def fail(name: str) -> None:
        if name.endswith(": rows stored"):
            raise KeyboardInterrupt

    monkeypatch.setattr("headwater.sinks.crash._reached", fail)
    with pytest.raises(KeyboardInterrupt):
        target.commit(stock(1, tea=2, rum=2))
    monkeypatch.undo()
    assert contents(store) == {"tea": 1}
    assert target.commit(stock(1, tea=2))
    assert contents(store) == {"tea": 2}


def test_names_that_are_hostile_to_sql_are_only_names(store: Store) -> None:
    schema = '`drop "table"; --` BIGINT, `select` STRING, `o0` BIGINT, `rowid` INT'
    target = store.sink("sqlite_master", schema, 'drop "table"; --')
    target.begin()
    row = {'drop "table"; --': 1, "select": "'; DELETE FROM views; --", "o0": 7, "rowid": 3}
    target.commit(Batch(0, pa.Table.from_pylist([row])))
    assert store.view("sqlite_master").get(1) == row
    assert [change.new for change in store.view("sqlite_master").changes()] == [row]


def test_a_version_that_was_dropped_does_not_come_back(store: Store) -> None:
    store.sink("stock", STOCK, "item")
    store.sink("stock", STOCK, "item", version=3)
    store.publish("stock", 3)
    store.drop("stock", 1)
    for version in (1, 2):
        with pytest.raises(Fenced, match=f"version {version} of view .* has been dropped"):
            store.sink("stock", STOCK, "item", version=version)
    assert store.versions("stock") == {3: True}


def test_publishing_what_is_published_changes_nothing(store: Store) -> None:
    with store.sink("stock", STOCK, "item") as sink:
        sink.begin()
        sink.commit(stock(0, tea=1))
        store.publish("stock", 1)
        sink.commit(stock(1, rum=2))
    assert contents(store) == {"tea": 1, "rum": 2}


def test_a_version_goes_on_where_it_was_after_it_is_published(store: Store) -> None:
    store.sink("stock", STOCK, "item")
    beside = store.sink("stock", STOCK, "item", version=2)
    beside.begin()
    beside.commit(stock(0, tea=1))
    store.publish("stock", 2)
    assert beside.commit(stock(1, tea=2))
    assert not beside.commit(stock(1, tea=3))
    assert contents(store) == {"tea": 2}
    assert [change.batch for change in store.view("stock").changes()] == [0, 1]
    following = store.sink("stock", STOCK, "item", version=2)
    assert following.begin() == 1


def test_the_names_of_all_views_are_known(store: Store) -> None:
    assert store.names() == []
    for name in ("stock", "prices"):
        store.sink(name, STOCK, "item")
    store.sink("stock", STOCK, "item", version=2)
    assert store.names() == ["prices", "stock"]
    assert store["prices"].name == "prices"


# Rows that somebody has removed by hand


def emptied(place: str, name: str) -> None:
    """Delete the rows of a view behind its back."""
    if "://" in place:
        with psycopg.connect(place) as db:
            db.execute(SQL("TRUNCATE {}").format(Identifier(name)))
        return
    with sqlite3.connect(place) as db:
        db.execute(f"DELETE FROM {catalog.find(db, name).tables.rows}")  # noqa: S608
    db.close()


def test_a_view_that_was_emptied_by_hand_is_not_gone_on_with(open_store: Reopen, place: str) -> None:
    with open_store() as store:
        sink = store.sink("stock", STOCK, "item")
        sink.begin()
        sink.commit(stock(0, tea=1))
    emptied(place, "stock")
    with open_store() as store, pytest.raises(SinkRefused, match="is empty"):
        store.sink("stock", STOCK, "item").begin()


def test_a_view_that_is_empty_because_all_was_deleted_goes_on(open_store: Reopen, place: str) -> None:
    gone = pa.table({"item": ["tea"], "count": pa.array([None], pa.int64()), "_deleted": [True]})
    with open_store() as store:
        sink = store.sink("stock", STOCK, "item")
        sink.begin()
        sink.commit(stock(0, tea=1))
        sink.commit(Batch(1, gone))
        sink.commit(Batch(2, gone.slice(0, 0)))
    with open_store() as store:
        sink = store.sink("stock", STOCK, "item")
        assert sink.begin() == 2
        assert sink.commit(stock(3, tea=2))


def test_a_view_whose_rows_are_gone_can_be_rebuilt(open_store: Reopen, place: str) -> None:
    with open_store() as store:
        sink = store.sink("stock", STOCK, "item")
        sink.begin()
        sink.commit(stock(0, tea=1))
    emptied(place, "stock")
    with open_store() as store:
        store.sink("stock", STOCK, "item", version=2).begin()
        store.publish("stock", 2)
        store.drop("stock", 1)
        assert store.versions("stock") == {2: True}
