"""Reading views: by key, range and order, as they change, and not before one's own writes."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from contextlib import closing
from datetime import UTC, datetime
from itertools import islice
from typing import Any

import psycopg
import pyarrow as pa
import pytest
from psycopg.sql import SQL

from headwater import Position
from headwater.errors import Behind, OffsetLost, UsageError
from headwater.sinks import Batch, Sink
from headwater.views import Store, View, open_views
from headwater.views.postgres import catalog as postgres_catalog
from headwater.views.postgres import reading as postgres_reading
from headwater.views.query import ViewQuery
from headwater.views.sqlite import catalog as sqlite_catalog
from headwater.views.sqlite import reading as sqlite_reading

T0 = datetime(2026, 1, 1, tzinfo=UTC)


def minute(n: int) -> datetime:
    return datetime(2026, 1, 1, 0, n, tzinfo=UTC)


@pytest.fixture
def clicks(store: Store) -> View:
    """Clicks of each address, minute by minute."""
    sink = store.sink("clicks", "url STRING, at TIMESTAMP, n BIGINT, tags ARRAY<STRING>", ("url", "at"))
    sink.begin()
    rows = [
        {"url": url, "at": minute(m), "n": None if m == 3 else (m * 7) % 5, "tags": [url] * m}
        for url in ("/a", "/b", "/c")
        for m in range(5)
    ]
    sink.commit(Batch(0, pa.Table.from_pylist(rows)))
    return store.view("clicks")


@pytest.fixture
def counter(store: Store) -> Sink:
    sink = store.sink("counter", "id BIGINT, n BIGINT", "id", feed=10)
    sink.begin()
    return sink


def put(sink: Sink, number: int, rows: dict[int, int | None], at: int | None = None) -> None:
    table = pa.table(
        {
            "id": pa.array(list(rows), pa.int64()),
            "n": pa.array(list(rows.values()), pa.int64()),
            "_deleted": [n is None for n in rows.values()],
        }
    )
    positions = () if at is None else (Position("orders", {0: at}), Position("refunds", {0: 1}))
    sink.commit(Batch(number, table, positions))


def pairs(scan: Any) -> list[tuple[str, int]]:
    return [(row["url"], row["at"].minute) for row in scan.to_pylist()]


# By key


def test_a_row_is_found_by_its_key_in_any_form(clicks: View) -> None:
    row = {"url": "/b", "at": minute(2), "n": 4, "tags": ["/b", "/b"]}
    assert clicks.get(("/b", minute(2))) == row
    assert clicks.get(["/b", minute(2)]) == row
    assert clicks.get({"at": minute(2), "url": "/b"}) == row
    assert clicks.get(("/b", minute(9))) is None


@pytest.mark.parametrize("key", ["/b", ("/b",), ("/b", T0, 1), {"url": "/b"}, ("/b", "noon"), (None, T0)])
def test_a_key_that_is_none_is_refused(clicks: View, key: Any) -> None:
    with pytest.raises(UsageError):
        clicks.get(key)


# Scans


def test_a_scan_is_in_the_order_of_the_key(clicks: View) -> None:
    assert pairs(clicks.scan()) == [(url, m) for url in ("/a", "/b", "/c") for m in range(5)]
    assert pairs(clicks.scan(descending=True, limit=2)) == [("/c", 4), ("/c", 3)]


def test_a_prefix_and_a_range_bound_a_scan(clicks: View) -> None:
    assert pairs(clicks.scan("/b", limit=2)) == [("/b", 0), ("/b", 1)]
    assert pairs(clicks.scan(("/b",), start=minute(3))) == [("/b", 3), ("/b", 4)]
    assert pairs(clicks.scan("/b", start=minute(1), end=minute(3))) == [("/b", 1), ("/b", 2)]
    assert pairs(clicks.scan(("/b", minute(3)))) == [("/b", 3)]
    assert pairs(clicks.scan(start="/b", end="/c")) == [("/b", m) for m in range(5)]
    assert clicks.scan("/nothing").to_table().schema == clicks.schema


def test_any_plain_column_can_be_the_order(clicks: View) -> None:
    assert [row["n"] for row in clicks.scan("/a", order="n").to_pylist()] == [None, 0, 2, 3, 4]
    newest = clicks.scan("/a", order="n", descending=True, limit=1).to_pylist()
    assert [row["n"] for row in newest] == [4]


def test_a_scan_comes_in_arrow_batches_of_the_views_schema(clicks: View) -> None:
    batches = list(clicks.scan())
    assert [batch.schema for batch in batches] == [clicks.schema]
    assert clicks.scan().to_table().num_rows == clicks.count() == 15
    assert clicks.key == ("url", "at")


@pytest.mark.parametrize(
    "arguments",
    [
        {"order": "m"},
        {"order": "tags"},
        {"limit": -1},
        {"limit": 1.5},
        {"prefix": ("/a", T0, 1)},
        {"prefix": ("/a", T0), "start": 1},
        {"prefix": 7},
        {"prefix": "/a", "end": "noon"},
    ],
)
def test_a_scan_that_cannot_be_meant_is_refused_at_once(clicks: View, arguments: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        clicks.scan(**arguments)


def test_a_scan_sees_one_moment_while_commits_go_on(store: Store, counter: Sink) -> None:
    put(counter, 0, dict.fromkeys(range(20_000), 0))
    view = store.view("counter")
    scan = iter(view.scan())
    first = next(scan)
    put(counter, 1, dict.fromkeys(range(20_000), 1))
    rest = [n for batch in scan for n in batch["n"].to_pylist()]
    assert set(first["n"].to_pylist()) | set(rest) == {0}
    assert view.get(0) == {"id": 0, "n": 1}


def test_a_view_that_is_kept_in_an_order_is_read_in_it_without_sorting(
    clicks: View, store: Store, place: str
) -> None:
    plain = [_newest(clicks, down) for down in (False, True)]
    for order, sorts in (("n", False), ("n", False), ("at", True), (None, True)):
        store.index_by("clicks", order)
        for down in (False, True):
            assert _newest(clicks, down) == plain[down]
            query = ViewQuery(("/b",), order="n", descending=down, limit=3)
            assert _sorts(place, query) is sorts, (order, down)
            assert _sorts(place, ViewQuery(("/b",), descending=down)) is False
    with pytest.raises(UsageError, match='cannot be ordered by "tags"'):
        store.index_by("clicks", "tags")


def _newest(clicks: View, descending: bool) -> list[dict[str, Any]]:
    return clicks.scan("/b", order="n", descending=descending, limit=3).to_pylist()


def _sorts(place: str, query: ViewQuery) -> bool:
    """Tell whether the database has to sort for a scan of the view of clicks."""
    if "://" not in place:
        with closing(sqlite3.connect(place)) as db:
            text, values = sqlite_reading._select(query, sqlite_catalog.find(db, "clicks").tables)
            return "TEMP B-TREE" in str(db.execute(f"EXPLAIN QUERY PLAN {text}", values).fetchall())
    with psycopg.connect(place) as server:
        server.execute("SET enable_sort = off")  # unless there is no other way
        server.execute("SET enable_seqscan = off")
        statement, asked = postgres_reading._select(query, postgres_catalog.find(server, "clicks"))
        return "Sort" in str(server.execute(SQL("EXPLAIN ") + statement, asked).fetchall())


# Changes


def test_changes_tell_the_row_before_and_after(store: Store, counter: Sink) -> None:
    put(counter, 0, {1: 10, 2: 20})
    put(counter, 1, {1: 11, 2: 20, 3: None})
    put(counter, 2, {2: None})
    found = [(c.sequence, c.kind, c.key, c.old, c.new, c.batch) for c in store.view("counter").changes()]
    assert found == [
        (1, "insert", (1,), None, {"id": 1, "n": 10}, 0),
        (2, "insert", (2,), None, {"id": 2, "n": 20}, 0),
        (3, "update", (1,), {"id": 1, "n": 10}, {"id": 1, "n": 11}, 1),
        (4, "delete", (2,), {"id": 2, "n": 20}, None, 2),
    ]
    assert [c.sequence for c in store.view("counter").changes(since=3)] == [4]
    assert store.view("counter").sequence() == 4


def test_a_key_that_comes_several_times_in_a_batch_changes_once(store: Store, counter: Sink) -> None:
    rows = pa.table({"id": [1, 1, 1], "n": [1, 2, 3]})
    counter.commit(Batch(0, rows))
    assert [c.new for c in store.view("counter").changes()] == [{"id": 1, "n": 3}]


def test_who_asks_for_changes_that_are_gone_is_told_how_many(store: Store, counter: Sink) -> None:
    for number in range(25):
        put(counter, number, {number: 0})
    view = store.view("counter")
    with pytest.raises(OffsetLost, match="15 changes of view") as caught:
        list(view.changes())
    assert (caught.value.missed, caught.value.earliest) == (15, 16)
    assert len(list(view.changes(since=15))) == 10
    assert list(view.changes(since=25)) == []
    with pytest.raises(UsageError, match="no change 26 yet"):
        list(view.changes(since=26))


def test_changes_of_a_rebuild_are_not_taken_for_those_before(store: Store, counter: Sink) -> None:
    put(counter, 0, {1: 1, 2: 2})
    view = store.view("counter")
    following = view.changes(follow=True)
    assert [next(following).key, next(following).key] == [(1,), (2,)]
    rebuilt = store.sink("counter", "id BIGINT, n BIGINT", "id", version=2)
    rebuilt.begin()
    put(rebuilt, 0, {1: 5})
    store.publish("counter", 2)
    with pytest.raises(OffsetLost, match="has been rebuilt"):
        next(following)
    assert [c.new for c in view.changes()] == [{"id": 1, "n": 5}]
    assert len(list(view.changes(since=1 << 40))) == 1


def test_a_follower_gets_changes_as_they_are_committed(store: Store, counter: Sink) -> None:
    def commit() -> None:
        for number in range(5):
            time.sleep(0.01)
            put(counter, number, {number: number})

    thread = threading.Thread(target=commit)
    thread.start()
    following = store.view("counter").changes(follow=True, timeout=30)
    found = [change.key[0] for change in islice(following, 5)]
    thread.join()
    assert found == [0, 1, 2, 3, 4]


def test_following_ends_after_the_time_without_a_change(store: Store, counter: Sink) -> None:
    other = store.sink("other", "id BIGINT, n BIGINT", "id")
    other.begin()
    stop = threading.Event()

    def disturb() -> None:
        number = 0
        while not stop.wait(0.01):
            put(other, number, {number: 0})
            number += 1

    thread = threading.Thread(target=disturb)
    thread.start()
    began = time.monotonic()
    assert list(store.view("counter").changes(follow=True, timeout=0.2)) == []
    assert 0.2 <= time.monotonic() - began < 5
    stop.set()
    thread.join()


# One's own writes


def test_a_reader_waits_for_its_own_writes(store: Store, counter: Sink) -> None:
    put(counter, 0, {1: 1}, at=3)
    thread = threading.Timer(0.1, lambda: put(counter, 1, {1: 2}, at=9))
    thread.start()
    view = store.view("counter")
    assert view.get(1, wait_for=Position("orders", {0: 3})) == {"id": 1, "n": 1}
    assert view.get(1, wait_for=Position("orders", {0: 9})) == {"id": 1, "n": 2}
    assert view.scan(wait_for=Position("orders", {0: 8})).to_pylist() == [{"id": 1, "n": 2}]
    assert [c.new for c in view.changes(since=1, wait_for=Position("orders", {0: 9}))] == [{"id": 1, "n": 2}]
    thread.join()


def test_a_reader_that_waits_in_vain_is_told_how_far_the_view_is(store: Store, counter: Sink) -> None:
    put(counter, 0, {1: 1}, at=3)
    with pytest.raises(Behind, match='up to "orders:0=3", not up to "orders:0=9": 6 records'):
        store.view("counter").get(1, wait_for=Position("orders", {0: 9}), timeout=0.05)


def test_a_view_that_has_read_nothing_yet_is_waited_for(store: Store, counter: Sink) -> None:
    view = store.view("counter")
    with pytest.raises(Behind):
        view.get(1, wait_for=Position("orders", {0: 1}), timeout=0.05)
    assert view.get(1, wait_for=Position("orders", {0: 0})) is None


def test_waiting_for_a_topic_the_view_does_not_read_is_refused(store: Store, counter: Sink) -> None:
    put(counter, 0, {1: 1}, at=3)
    with pytest.raises(UsageError, match='did you mean "orders"'):
        store.view("counter").get(1, wait_for=Position("order", {0: 1}))


# Other processes and places


def test_another_process_reads_while_the_writer_commits(place: str, counter: Sink) -> None:
    put(counter, 0, dict.fromkeys(range(100), 0))
    child = os.fork()
    if child == 0:
        seen = set()
        with open_views(place) as views:
            while len(seen) < 3:
                rows = views["counter"].scan().to_table()["n"].to_pylist()
                if len(set(rows)) != 1:
                    os._exit(1)  # half a batch
                seen.add(rows[0])
        os._exit(0)
    number, ended = 0, (0, 0)
    while ended == (0, 0):
        number += 1
        put(counter, number, dict.fromkeys(range(100), number))
        ended = os.waitpid(child, os.WNOHANG)
    assert os.waitstatus_to_exitcode(ended[1]) == 0


def test_many_threads_read_at_once(clicks: View) -> None:
    failed: list[BaseException] = []

    def read() -> None:
        try:
            for _ in range(50):
                assert clicks.get(("/b", minute(2))) is not None
                assert clicks.scan("/b").to_table().num_rows == 5
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=read) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
