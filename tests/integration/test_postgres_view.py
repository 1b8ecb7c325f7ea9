"""A PostgreSQL sink read as a view, on a real server."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from itertools import islice
from typing import Any

import pyarrow as pa
import pytest

from headwater import Position
from headwater.errors import Behind, OffsetLost, UsageError
from headwater.sinks import Batch
from headwater.sinks.postgres import PostgresSink, PostgresView
from postgres_server import Server

SCHEMA = "url STRING, n INT, price DECIMAL(30,10), at TIMESTAMP, tags ARRAY<BINARY>, free VARIANT"
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.fixture
def sink(server: Server) -> Iterator[PostgresSink]:
    with PostgresSink(server.dsn, f"t_{uuid.uuid4().hex[:12]}", SCHEMA, ("url", "n"), feed=5) as sink:
        sink.begin()
        yield sink


@pytest.fixture
def view(server: Server, sink: PostgresSink) -> Iterator[PostgresView]:
    view = PostgresView(server.dsn, sink._table)
    yield view
    view.close()


def row(url: str, n: int, price: str | None = "1.5") -> dict[str, Any]:
    value = None if price is None else Decimal(price).quantize(Decimal("1e-10"))
    return {"url": url, "n": n, "price": value, "at": NOON, "tags": [b"\0", None], "free": '{"a":1}'}


def put(
    sink: PostgresSink, number: int, *rows: dict[str, Any], gone: tuple[tuple[str, int], ...] = ()
) -> None:
    deleted = [{"url": url, "n": n} for url, n in gone]
    schema = pa.schema([*PARSED, pa.field("_deleted", pa.bool_())])
    marked = [{**each, "_deleted": False} for each in rows] + [{**each, "_deleted": True} for each in deleted]
    table = pa.Table.from_pylist(marked, schema=schema)
    sink.commit(Batch(number, table, (Position("orders", {0: number + 1}),), number))


PARSED = [
    pa.field("url", pa.string()),
    pa.field("n", pa.int32()),
    pa.field("price", pa.decimal128(30, 10)),
    pa.field("at", pa.timestamp("us", "UTC")),
    pa.field("tags", pa.list_(pa.binary())),
    pa.field("free", pa.string()),
]


def test_rows_are_found_by_key_range_and_order(sink: PostgresSink, view: PostgresView) -> None:
    put(sink, 0, *(row(url, n, str(n % 3)) for url in ("/a", "/b") for n in range(5)))
    assert view.get(("/a", 2)) == row("/a", 2, "2")
    assert view.get({"url": "/a", "n": 9}) is None
    assert view.scan("/b", start=1, end=3)["n"].to_pylist() == [1, 2]
    assert view.scan("/b", descending=True, limit=2)["n"].to_pylist() == [4, 3]
    assert view.scan("/a", order="price")["n"].to_pylist() == [0, 3, 1, 4, 2]
    assert view.scan("/nothing").num_rows == 0
    assert (view.key, view.position(), view.clock()) == (("url", "n"), (Position("orders", {0: 1}),), 0)
    for wrong in ({"order": "m"}, {"limit": -1}, {"prefix": ("/a", 1, 2)}):
        with pytest.raises(UsageError):
            view.scan(**wrong)


def test_changes_tell_the_row_before_and_after(sink: PostgresSink, view: PostgresView) -> None:
    put(sink, 0, row("/a", 1), row("/b", 1))
    put(sink, 1, row("/a", 1, "2"), row("/b", 1), gone=(("/c", 1),))
    put(sink, 2, gone=(("/b", 1),))
    found = [(c.sequence, c.kind, c.key, c.old, c.new, c.batch) for c in view.changes()]
    assert found == [
        (1, "insert", ("/a", 1), None, row("/a", 1), 0),
        (2, "insert", ("/b", 1), None, row("/b", 1), 0),
        (3, "update", ("/a", 1), row("/a", 1), row("/a", 1, "2"), 1),
        (4, "delete", ("/b", 1), row("/b", 1), None, 2),
    ]
    assert view.sequence() == 4


def test_who_asks_for_changes_that_are_gone_is_told_how_many(sink: PostgresSink, view: PostgresView) -> None:
    for number in range(8):
        put(sink, number, row("/a", number))
    with pytest.raises(OffsetLost, match="3 changes"):
        list(view.changes())
    assert [change.sequence for change in view.changes(since=3)] == [4, 5, 6, 7, 8]
    with pytest.raises(UsageError, match="no change 9 yet"):
        list(view.changes(since=9))


def test_a_follower_gets_changes_as_they_are_committed(sink: PostgresSink, view: PostgresView) -> None:
    threading.Timer(0.1, lambda: [put(sink, number, row("/a", number)) for number in range(3)]).start()
    assert [c.key[1] for c in islice(view.changes(follow=True, timeout=30), 3)] == [0, 1, 2]
    assert list(view.changes(since=3, follow=True, timeout=0.1)) == []


def test_a_reader_waits_for_its_own_writes(sink: PostgresSink, view: PostgresView) -> None:
    threading.Timer(0.1, lambda: put(sink, 4, row("/a", 1))).start()
    assert view.get(("/a", 1), wait_for=Position("orders", {0: 5})) == row("/a", 1)
    with pytest.raises(Behind, match="4 records are missing"):
        view.scan(wait_for=Position("orders", {0: 9}), timeout=0.05)


def test_a_table_that_no_sink_writes_to_is_told(server: Server, sink: PostgresSink) -> None:
    with pytest.raises(UsageError, match="no sink writes to table"):
        PostgresView(server.dsn, "nothing")
