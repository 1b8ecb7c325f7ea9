"""Views in PostgreSQL as others see them: as tables, with rights, and beside tables that are not ours."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import psycopg
import pyarrow as pa
import pytest
from psycopg.sql import SQL, Identifier

from headwater.errors import OffsetLost, SinkUnavailable, UsageError
from headwater.sinks import Batch
from headwater.views import View, open_views
from headwater.views.postgres import PostgresSink, PostgresStore
from postgres_kit import STOCK, selected, stock
from postgres_server import Server

SCHEMA = "url STRING, n INT, price DECIMAL(30,10), at TIMESTAMP, tags ARRAY<BINARY>, free VARIANT"
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def row(url: str, n: int, price: str | None = "1.5") -> dict[str, Any]:
    value = None if price is None else Decimal(price).quantize(Decimal("1e-10"))
    return {"url": url, "n": n, "price": value, "at": NOON, "tags": [b"\0", None], "free": '{"a":1}'}


# Tables of sinks


@pytest.fixture
def sink(server: Server, name: str) -> Iterator[PostgresSink]:
    with PostgresSink(server.dsn, name, SCHEMA, ("url", "n"), feed=5) as sink:
        sink.begin()
        yield sink


@pytest.fixture
def view(store: PostgresStore, sink: PostgresSink, name: str) -> View:
    return store[name]


def put(sink: PostgresSink, number: int, *rows: dict[str, Any]) -> None:
    kinds = {"n": pa.int32(), "price": pa.decimal128(30, 10), "at": pa.timestamp("us", "UTC"),
             "tags": pa.list_(pa.binary())}  # fmt: skip
    schema = pa.schema([(key, kinds.get(key, pa.string())) for key in row("", 0)])
    sink.commit(Batch(number, pa.Table.from_pylist(list(rows), schema=schema)))


def test_the_table_of_a_sink_is_read_as_a_view(sink: PostgresSink, view: View) -> None:
    put(sink, 0, *(row(url, n, str(n % 3)) for url in ("/a", "/b") for n in range(5)))
    assert view.get(("/a", 2)) == row("/a", 2, "2")
    assert view.scan("/a", order="price").to_table()["n"].to_pylist() == [0, 3, 1, 4, 2]
    put(sink, 1, row("/a", 2, None))
    (change,) = view.changes(since=10)
    assert (change.kind, change.old, change.new) == ("update", row("/a", 2, "2"), row("/a", 2, None))


def test_who_asks_for_changes_that_are_gone_is_told_how_many(sink: PostgresSink, view: View) -> None:
    for number in range(8):
        put(sink, number, row("/a", number))
    with pytest.raises(OffsetLost, match="3 changes"):
        list(view.changes())
    assert [change.sequence for change in view.changes(since=3)] == [4, 5, 6, 7, 8]


def test_a_sink_without_a_feed_has_no_changes_and_says_so(
    server: Server, store: PostgresStore, name: str
) -> None:
    with PostgresSink(server.dsn, name, STOCK, "item") as sink:
        sink.begin()
        sink.commit(stock(0, tea=1))
    with pytest.raises(UsageError, match="has no changes saved"):
        list(store[name].changes())


def test_free_json_of_any_size_of_number_comes_back(server: Server, store: PostgresStore, name: str) -> None:
    with PostgresSink(server.dsn, name, "id BIGINT, free VARIANT", "id") as sink:
        sink.begin()
        sink.commit(Batch(0, pa.table({"id": [1], "free": ["[123456789012345678901234567890, 0.1]"]})))
    found = store[name].get(1)
    assert found is not None and found["free"] == "[123456789012345678901234567890,0.1]"


def test_a_scan_that_is_under_way_is_finished_before_the_switch(store: PostgresStore, name: str) -> None:
    old = store.sink(name, STOCK, "item")
    old.begin()
    old.commit(stock(0, **{f"i{n:05d}": 1 for n in range(20_000)}))
    store.sink(name, STOCK, "item", version=2)
    scan = iter(store[name].scan())
    seen = [*next(scan)["item"].to_pylist()]
    switching = threading.Thread(target=store.publish, args=(name, 2))
    switching.start()
    seen += [item for batch in scan for item in batch["item"].to_pylist()]
    switching.join()
    assert len(set(seen)) == 20_000
    assert store[name].count() == 0


def test_what_depends_on_an_old_version_is_told(
    store: PostgresStore, name: str, db: psycopg.Connection
) -> None:
    store.sink(name, STOCK, "item")
    store.sink(name, STOCK, "item", version=2)
    top = Identifier(f"{name}_top")
    db.execute(SQL("CREATE VIEW {} AS SELECT * FROM {}").format(top, Identifier(name)))
    store.publish(name, 2)
    with pytest.raises(UsageError, match="something in the database depends on it"):
        store.drop(name, 1)
    db.execute(SQL("DROP VIEW {}").format(top))
    store.drop(name, 1)


# What is not ours, or gone


def test_a_table_of_somebody_else_does_not_become_a_view(
    store: PostgresStore, name: str, db: psycopg.Connection
) -> None:
    db.execute(SQL("CREATE TABLE {} (item TEXT PRIMARY KEY, count BIGINT)").format(Identifier(name)))
    with pytest.raises(UsageError, match="belongs to no view"):
        store.sink(name, STOCK, "item")
    assert name not in store.names()


def test_a_table_that_is_gone_is_not_begun_anew(
    store: PostgresStore, name: str, db: psycopg.Connection
) -> None:
    with store.sink(name, STOCK, "item") as sink:
        sink.begin()
        sink.commit(stock(0, tea=1))
    db.execute(SQL("DROP TABLE {} CASCADE").format(Identifier(name)))
    with pytest.raises(SinkUnavailable, match="is gone"):
        store.sink(name, STOCK, "item")


def test_a_name_that_the_server_would_cut_is_refused(store: PostgresStore) -> None:
    with pytest.raises(UsageError, match="too long for PostgreSQL"):
        store.sink("v" * 48, STOCK, "item")


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://shop:sec@ret@127.0.0.1:1/shop",
        "postgresql://shop:sec/ret@127.0.0.1:1/shop",
        "postgresql://shop:12/sec@127.0.0.1:1/shop",
        "postgresql://shop:sec%ret@127.0.0.1:1/shop",
        "postgresql://shop:secret@127.0.0.1:1/shop?password=sec",
        "mysql://shop:secret@127.0.0.1:1/shop",
    ],
)
def test_no_error_tells_a_password(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headwater.views.postgres.store.READ_SECONDS", 0.01)
    with pytest.raises((UsageError, SinkUnavailable)) as caught, open_views(url) as views:
        views.names()
    assert "sec" not in str(caught.value) and "ret" not in str(caught.value)


def test_a_table_that_its_sink_was_given_is_neither_replaced_nor_dropped(
    server: Server, store: PostgresStore, name: str, db: psycopg.Connection
) -> None:
    db.execute(SQL("CREATE TABLE {} (item TEXT PRIMARY KEY, count BIGINT)").format(Identifier(name)))
    with PostgresSink(server.dsn, name, STOCK, "item", feed=3) as sink:
        sink.begin()
        sink.commit(stock(0, tea=1))
    with PostgresSink(server.dsn, name, STOCK, "item", version=2) as sink:
        sink.begin()
    with pytest.raises(UsageError, match="cannot be replaced by another version"):
        store.publish(name, 2)
    store.drop(name)
    assert selected(db, name) == {"tea": 1} and name not in store.names()


def test_an_index_of_a_users_own_outlives_an_arrangement(
    store: PostgresStore, name: str, db: psycopg.Connection
) -> None:
    store.sink(name, "item STRING, shop STRING, count BIGINT", ("item", "shop"))
    (number,) = db.execute("SELECT id FROM headwater_sinks WHERE name = %s", (name,)).fetchone() or ()
    own = f"headwater_order_{number}_mine"
    db.execute(SQL("CREATE INDEX {} ON {} (count)").format(Identifier(own), Identifier(name)))
    store.index_by(name, "count")
    store.index_by(name, None)
    found = db.execute("SELECT indexname FROM pg_indexes WHERE tablename = %s", (name,)).fetchall()
    assert {index for (index,) in found} == {own, f"{name}_pkey"}


def test_changes_that_somebody_has_dropped_are_told_as_gone(
    store: PostgresStore, name: str, db: psycopg.Connection
) -> None:
    with store.sink(name, STOCK, "item") as sink:
        sink.begin()
        sink.commit(stock(0, tea=1, rum=1))
    db.execute(SQL("DROP TABLE {}").format(Identifier(f"{name}_changes")))
    store.sink(name, STOCK, "item")
    with pytest.raises(OffsetLost, match="2 changes"):
        list(store[name].changes())


def test_a_view_with_a_dot_in_its_name_is_refused(store: PostgresStore) -> None:
    with pytest.raises(UsageError, match=r'view "sales\.orders" cannot be kept in PostgreSQL') as caught:
        store.sink("sales.orders", STOCK, "item")
    assert "search_path" in str(caught.value.hint)
