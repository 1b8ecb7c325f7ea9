"""A real database's changes, from its commits to Arrow."""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Callable

import psycopg
import pytest

import postgres_server
from capture_kit import deliveries, followed, last_position, singles, tables_changes
from headwater.capture.change import Truncation
from headwater.capture.postgres.catalog import Catalog
from headwater.capture.postgres.source import PostgresSource, object_name
from headwater.errors import SourceRefused, SourceUnavailable, UsageError

Capture = Callable[..., PostgresSource]


@pytest.fixture
def items(db: psycopg.Connection) -> None:
    db.execute("CREATE TABLE items (id int PRIMARY KEY, name text)")


def test_changes_come_with_their_transactions(items: None, db: psycopg.Connection, capture: Capture) -> None:
    source = capture()
    source.begin(["items"], None)
    with db.transaction():
        db.execute("INSERT INTO items VALUES (1, 'one'), (2, 'two')")
        db.execute("UPDATE items SET name = 'uno' WHERE id = 1")
    db.execute("DELETE FROM items WHERE id = 2")
    found = deliveries(source)
    told = [(each.operation, each.index, each.row) for each in singles(found)]
    assert told == [
        ("insert", 0, {"id": 1, "name": "one"}),
        ("insert", 1, {"id": 2, "name": "two"}),
        ("update", 2, {"id": 1, "name": "uno"}),
        ("delete", 0, {"id": 2, "name": None}),
    ]
    transactions = tables_changes(found)[0].transactions
    assert len(set(transactions.id)) == len(transactions.id)
    now = time.time() * 1e6
    assert all(now - 60e6 < moment < now + 60e6 for moment in transactions.committed.tolist())


def test_transactions_come_in_the_order_of_their_commits(
    items: None, db: psycopg.Connection, database: str, capture: Capture
) -> None:
    source = capture()
    source.begin(["items"], None)
    with psycopg.connect(database) as first, psycopg.connect(database) as second:
        first.execute("INSERT INTO items VALUES (1, 'begun first')")
        second.execute("INSERT INTO items VALUES (2, 'begun second')")
        first.execute("INSERT INTO items VALUES (3, 'begun first')")
        second.commit()
        db.execute("INSERT INTO items VALUES (4, 'alone')")
        first.commit()
    assert [each.row["id"] for each in singles(deliveries(source)) if each.row] == [2, 4, 1, 3]


def test_a_transaction_that_is_rolled_back_is_not_told(
    items: None, db: psycopg.Connection, capture: Capture
) -> None:
    source = capture()
    source.begin(["items"], None)
    with db.transaction(force_rollback=True):
        db.execute("INSERT INTO items VALUES (1, 'never')")
    with db.transaction():
        db.execute("INSERT INTO items VALUES (2, 'kept')")
        with db.transaction(force_rollback=True):
            db.execute("INSERT INTO items VALUES (3, 'never')")
    assert [each.row for each in singles(deliveries(source))] == [{"id": 2, "name": "kept"}]


def test_who_follows_the_changes_has_the_table(
    items: None, db: psycopg.Connection, database: str, capture: Capture
) -> None:
    source, chance = capture(), random.Random(7)
    source.begin(["items"], None)
    writers = [psycopg.connect(database) for _ in range(3)]
    for _ in range(150):
        writer = chance.choice(writers)
        number = chance.randrange(30) * 3 + writers.index(writer)  # no two wait for each other
        writer.execute(
            chance.choice(
                [
                    "INSERT INTO items VALUES (%(id)s, %(name)s)"
                    " ON CONFLICT (id) DO UPDATE SET name = excluded.name",
                    "UPDATE items SET name = name || %(name)s WHERE id = %(id)s",
                    "DELETE FROM items WHERE id = %(id)s",
                    "UPDATE items SET id = id + 300 WHERE id = %(id)s"
                    " AND NOT EXISTS (SELECT FROM items WHERE id = %(id)s + 300)",
                ]
            ),
            {"id": number, "name": f"{chance.random():.3f}"},
        )
        if chance.random() < 0.4:
            chance.choice(writers).commit()
    for writer in writers:
        writer.commit()
        writer.close()
    rows = followed(deliveries(source), lambda row: row["id"])
    assert sorted((row["id"], row["name"]) for row in rows.values()) == sorted(
        db.execute("SELECT id, name FROM items").fetchall()
    )


def test_a_large_transaction_comes_in_several_deliveries(
    items: None, db: psycopg.Connection, capture: Capture
) -> None:
    source = capture()
    begun = source.begin(["items"], None)
    count = 150_000
    db.execute("INSERT INTO items SELECT n, repeat('x', 150) FROM generate_series(1, %s) n", (count,))
    found = deliveries(source)
    with_changes = [each for each in found if each.changes]
    assert len(with_changes) > 1
    changes = tables_changes(found)
    (commit,) = changes[0].transactions.position
    before = [each.position for each in with_changes[:-1] if each.position is not None]
    assert not any(source.passed(position, commit) for position in before)
    assert [index for each in changes for index in each.index.tolist()] == list(range(count))
    assert len({(each.transactions.id, each.transactions.position) for each in changes}) == 1
    assert not source.passed(begun, last_position(found))


def test_a_stream_that_breaks_within_a_transaction_goes_on_there(
    items: None, db: psycopg.Connection, capture: Capture
) -> None:
    source = capture(name="broken")
    source.begin(["items"], None)
    count = 150_000
    db.execute("INSERT INTO items SELECT n, repeat('x', 150) FROM generate_series(1, %s) n", (count,))
    first = source.read(5)
    while not first.changes:
        first = source.read(5)
    (commit,) = tables_changes([first])[0].transactions.position
    assert first.position is None or not source.passed(first.position, commit)
    end = "SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE slot_name = %s"
    db.execute(end, ("headwater_broken",))
    found = [first]
    with pytest.raises(SourceUnavailable, match="cannot be read"):
        while True:
            found.append(source.read(1))
    found += deliveries(source)
    ids = [number for each in tables_changes(found) for number in each.rows.column("id").to_pylist()]
    assert ids == list(range(1, count + 1))
    assert [n for each in tables_changes(found) for n in each.index.tolist()] == list(range(count))


def test_nothing_is_lost_where_the_catalog_cannot_be_read_for_a_moment(
    items: None, db: psycopg.Connection, capture: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = capture()
    source.begin(["items"], None)
    db.execute("INSERT INTO items VALUES (1, 'one')")

    def away(*_: object) -> None:
        raise SourceUnavailable("it is away")

    with monkeypatch.context() as patched:
        patched.setattr(Catalog, "layout", away)
        with pytest.raises(SourceUnavailable, match="it is away"):
            deliveries(source)
    assert [each.row for each in singles(deliveries(source))] == [{"id": 1, "name": "one"}]


def test_a_stream_goes_on_when_its_server_has_crashed() -> None:
    with postgres_server.running_server() as server, PostgresSource(server.dsn, "crashed") as source:
        with psycopg.connect(server.dsn) as db:
            db.execute("CREATE TABLE items (id int PRIMARY KEY, name text)")
        source.begin(["items"], None)
        with psycopg.connect(server.dsn) as db:
            db.execute("INSERT INTO items VALUES (1, 'before')")
        found = deliveries(source)
        server.stop(signal.SIGQUIT)
        with pytest.raises(SourceUnavailable) as away:
            for _ in range(3):
                source.read(0.5)
        assert not isinstance(away.value, SourceRefused)
        server.start()
        with psycopg.connect(server.dsn) as db:
            db.execute("INSERT INTO items VALUES (2, 'after')")
        found += deliveries(source)
        assert [each.row["id"] for each in singles(found) if each.row] == [1, 2]


def test_a_stream_begun_again_delivers_the_same(
    items: None, db: psycopg.Connection, capture: Capture
) -> None:
    source = capture()
    begun = source.begin(["items"], None)
    for number in range(20):
        db.execute("INSERT INTO items VALUES (%s, 'x')", (number,))
    first = singles(deliveries(source))
    source.begin(["items"], begun)
    assert singles(deliveries(source)) == first
    assert len(first) == 20


def test_a_stream_begins_behind_any_transaction(
    items: None, db: psycopg.Connection, capture: Capture
) -> None:
    source = capture()
    begun = source.begin(["items"], None)
    for number in range(5):
        db.execute("INSERT INTO items VALUES (%s, 'x')", (number,))
    found = deliveries(source)
    positions = [
        (each.rows.column("id").to_pylist()[number], each.transactions.position[at])
        for each in tables_changes(found)
        for number, at in enumerate(each.transaction.tolist())
    ]
    end = last_position(found)
    for number, position in positions[:-1]:
        assert source.passed(position, begun)
        source.begin(["items"], position)
        rows = [each.row["id"] for each in singles(deliveries(source, end)) if each.row]
        assert rows == list(range(number + 1, 5))


def test_what_is_confirmed_the_server_need_not_keep(
    items: None, db: psycopg.Connection, capture: Capture
) -> None:
    source = capture()
    source.begin(["items"], None)
    db.execute("INSERT INTO items SELECT n, repeat('x', 100) FROM generate_series(1, 20000) n")
    position = last_position(deliveries(source))
    before = source.retained()
    assert before is not None
    assert before > 2_000_000
    deadline = time.monotonic() + 120
    while (source.retained() or 0) > before // 10:
        assert time.monotonic() < deadline
        source.confirm(position)
        db.execute("CHECKPOINT")
        position = source.read(0.2).position or position


def test_what_is_not_confirmed_the_server_keeps(
    items: None, db: psycopg.Connection, capture: Capture
) -> None:
    source = capture(name="kept")
    begun = source.begin(["items"], None)
    db.execute("INSERT INTO items VALUES (1, 'x')")
    deliveries(source)
    db.execute("CHECKPOINT")
    source.read(0.2)
    source.close()
    again = capture(name="kept")
    assert again.begin(["items"], begun) == begun
    assert len(singles(deliveries(again))) == 1


def test_the_position_of_an_idle_database_comes_at_once(
    items: None, db: psycopg.Connection, capture: Capture
) -> None:
    source = capture()
    source.begin(["items"], None)
    db.execute("CREATE TABLE others (id int)")
    db.execute("SET synchronous_commit = off")
    db.execute("INSERT INTO others SELECT generate_series(1, 1000)")
    began = time.monotonic()
    assert singles(deliveries(source)) == []
    assert time.monotonic() - began < 5
    began = time.monotonic()
    assert source.read(0.3).changes == ()
    assert time.monotonic() - began < 2


def test_tables_that_come_later_are_delivered_from_then_on(
    items: None, db: psycopg.Connection, capture: Capture
) -> None:
    source = capture()
    source.begin(["items"], None)
    db.execute("CREATE TABLE more (id int PRIMARY KEY)")
    db.execute("INSERT INTO more VALUES (1)")
    db.execute("INSERT INTO items VALUES (1, 'x')")
    found = deliveries(source)
    source.begin(["items", "more"], last_position(found))
    db.execute("INSERT INTO more VALUES (2)")
    db.execute("INSERT INTO items VALUES (2, 'x')")
    found += deliveries(source)
    assert [(each.table, each.row["id"]) for each in singles(found) if each.row] == [
        ("items", 1), ("more", 2), ("items", 2),
    ]  # fmt: skip


def test_a_truncation_is_told_where_it_was(items: None, db: psycopg.Connection, capture: Capture) -> None:
    db.execute("CREATE TABLE more (id int PRIMARY KEY)")
    source = capture()
    source.begin(["items", "more"], None)
    with db.transaction():
        db.execute("INSERT INTO items VALUES (1, 'x')")
        db.execute("TRUNCATE items, more")
        db.execute("INSERT INTO items VALUES (2, 'x')")
    found = deliveries(source)
    parts = [each for delivery in found for each in delivery.changes]
    assert [isinstance(each, Truncation) for each in parts] == [False, True, True, False]
    told = [(each.table, each.operation, each.index) for each in singles(found)]
    assert sorted(told[1:3]) == [("items", "truncate", 1), ("more", "truncate", 1)]
    assert (told[0], told[3]) == (("items", "insert", 0), ("items", "insert", 2))


def test_partitions_are_told_as_the_table_they_are_parts_of(db: psycopg.Connection, capture: Capture) -> None:
    db.execute("CREATE TABLE logs (id int, day int, PRIMARY KEY (day, id)) PARTITION BY RANGE (day)")
    db.execute("CREATE TABLE logs_1 PARTITION OF logs FOR VALUES FROM (0) TO (10)")
    db.execute("CREATE TABLE logs_2 (day int NOT NULL, extra int, id int NOT NULL)")
    db.execute("ALTER TABLE logs_2 DROP COLUMN extra, ADD PRIMARY KEY (day, id)")
    db.execute("ALTER TABLE logs ATTACH PARTITION logs_2 FOR VALUES FROM (10) TO (20)")
    source = capture()
    assert [each.name for each in source.tables() if "." not in each.name] == ["logs"]
    source.begin(["logs"], None)
    db.execute("INSERT INTO logs VALUES (1, 5), (2, 15)")
    db.execute("UPDATE logs SET day = 16 WHERE id = 1")  # which moves it to the other partition
    db.execute("CREATE TABLE logs_3 PARTITION OF logs FOR VALUES FROM (20) TO (30)")
    db.execute("INSERT INTO logs VALUES (3, 25)")
    db.execute("DELETE FROM logs WHERE id = 2")
    found = deliveries(source)
    assert {each.table for each in singles(found)} == {"logs"}
    assert sorted(followed(found, lambda row: (row["day"], row["id"]))) == [(16, 1), (25, 3)]
    assert source.chunk("logs", None, 10).rows.to_pylist() == [{"id": 1, "day": 16}, {"id": 3, "day": 25}]


def test_a_value_that_was_not_sent_is_marked(db: psycopg.Connection, capture: Capture) -> None:
    db.execute("CREATE TABLE docs (id int PRIMARY KEY, title text, body text)")
    db.execute("ALTER TABLE docs ALTER body SET STORAGE EXTERNAL")
    db.execute("INSERT INTO docs SELECT n, 'old', repeat('x', 10000) FROM generate_series(1, 2) n")
    source = capture()
    source.begin(["docs"], None)
    db.execute("UPDATE docs SET title = 'new' WHERE id = 1")
    db.execute("UPDATE docs SET body = 'short' WHERE id = 2")
    db.execute("UPDATE docs SET id = 3 WHERE id = 1")
    found = deliveries(source)
    rows = [(each.operation, each.row) for each in singles(found)]
    assert rows == [
        ("update", {"id": 1, "title": "new", "body": None}),
        ("update", {"id": 2, "title": "old", "body": "short"}),
        ("delete", {"id": 1, "title": None, "body": None}),
        ("insert", {"id": 3, "title": "new", "body": None}),
    ]
    unchanged = [each.unchanged.get("body", [False] * len(each)) for each in tables_changes(found)]
    assert [bool(flag) for flags in unchanged for flag in flags] == [True, False, False, True]


def test_with_full_identity_rows_are_told_as_they_were(db: psycopg.Connection, capture: Capture) -> None:
    db.execute("CREATE TABLE docs (id int PRIMARY KEY, title text, body text)")
    db.execute("ALTER TABLE docs REPLICA IDENTITY FULL, ALTER body SET STORAGE EXTERNAL")
    body = "y" * 10_000
    db.execute("INSERT INTO docs VALUES (1, 'old', %s)", (body,))
    source = capture()
    source.begin(["docs"], None)
    db.execute("UPDATE docs SET title = 'new'")
    db.execute("UPDATE docs SET id = 2")
    db.execute("DELETE FROM docs")
    found = deliveries(source)
    old, new = {"id": 1, "title": "old", "body": body}, {"id": 1, "title": "new", "body": body}
    moved = {**new, "id": 2}
    assert [(each.operation, each.row, each.before) for each in singles(found)] == [
        ("update", new, old),
        ("delete", new, new),
        ("insert", moved, None),
        ("delete", moved, moved),
    ]
    assert tables_changes(found)[0].table.key == ("id",)
    assert all(not each.unchanged for each in tables_changes(found))


def test_the_index_of_the_replica_identity_is_the_key(db: psycopg.Connection, capture: Capture) -> None:
    db.execute("CREATE TABLE users (id int PRIMARY KEY, mail text NOT NULL UNIQUE, age int)")
    db.execute("ALTER TABLE users REPLICA IDENTITY USING INDEX users_mail_key")
    source = capture()
    assert {each.name: each.key for each in source.tables()}["users"] == ("mail",)
    source.begin(["users"], None)
    db.execute("INSERT INTO users VALUES (1, 'a', 30)")
    db.execute("UPDATE users SET id = 2")
    db.execute("UPDATE users SET mail = 'b'")
    assert [(each.operation, each.row) for each in singles(deliveries(source))] == [
        ("insert", {"id": 1, "mail": "a", "age": 30}),
        ("update", {"id": 2, "mail": "a", "age": 30}),
        ("delete", {"id": None, "mail": "a", "age": None}),
        ("insert", {"id": 2, "mail": "b", "age": 30}),
    ]


def test_columns_that_are_added_dropped_and_renamed_change_the_table_from_then_on(
    items: None, db: psycopg.Connection, capture: Capture
) -> None:
    source = capture()
    source.begin(["items"], None)
    db.execute("INSERT INTO items VALUES (1, 'one')")
    db.execute("ALTER TABLE items ADD price numeric(6,2)")
    db.execute("INSERT INTO items VALUES (2, 'two', 2.5)")
    db.execute("ALTER TABLE items DROP name")
    db.execute("INSERT INTO items VALUES (3, 3.5)")
    db.execute("ALTER TABLE items RENAME id TO number")
    db.execute("DELETE FROM items WHERE number = 1")
    changes = tables_changes(deliveries(source))
    assert [each.table.schema.names for each in changes] == [
        ["id", "name"], ["id", "name", "price"], ["id", "price"], ["number", "price"],
    ]  # fmt: skip
    assert changes[1].table.columns[2].sql_type == "numeric(6,2)"
    assert changes[3].table.key == ("number",)
    assert [str(each.rows.column("price")[0]) for each in changes[1:3]] == ["2.50", "3.50"]


def test_a_column_without_a_binary_form_may_come_in_the_middle_of_a_transaction(
    items: None, db: psycopg.Connection, capture: Capture
) -> None:
    source = capture()
    source.begin(["items"], None)
    with db.transaction():
        db.execute("INSERT INTO items VALUES (1, 'one')")
        db.execute("ALTER TABLE items ADD address inet")
        db.execute("INSERT INTO items VALUES (2, 'two', '10.0.0.1')")
    told = [(each.index, each.row) for each in singles(deliveries(source))]
    assert told == [(0, {"id": 1, "name": "one"}), (1, {"id": 2, "name": "two", "address": "10.0.0.1"})]


def test_a_table_that_is_gone_is_still_told_as_it_was(
    items: None, db: psycopg.Connection, capture: Capture
) -> None:
    source = capture()
    source.begin(["items"], None)
    db.execute("INSERT INTO items VALUES (1, 'one')")
    db.execute("DROP TABLE items")
    assert [(each.table, each.row) for each in singles(deliveries(source))] == [
        ("items", {"id": 1, "name": "one"})
    ]


def test_dropping_a_capture_removes_what_it_has_made(
    items: None, db: psycopg.Connection, capture: Capture
) -> None:
    source = capture(name="short")
    source.begin(["items"], None)
    count = "SELECT (SELECT count(*) FROM pg_replication_slots WHERE slot_name = 'headwater_short')"
    count += " + (SELECT count(*) FROM pg_publication WHERE pubname = 'headwater_short')"
    assert db.execute(count).fetchone() == (2,)
    source.drop()
    source.drop()
    assert db.execute(count).fetchone() == (0,)


def test_a_capture_that_has_not_begun_cannot_be_read(capture: Capture) -> None:
    with pytest.raises(UsageError, match="before it has begun"):
        capture().read(0.1)


def test_the_names_of_slots_are_what_postgresql_allows() -> None:
    assert object_name("shop") == "headwater_shop"
    assert object_name("my-shop") != object_name("my.shop")
    assert object_name("my-shop").startswith("headwater_my_shop_")
    assert len(object_name("x" * 200)) <= 63
