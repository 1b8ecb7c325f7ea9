"""A capture of a real PostgreSQL server into the log: large values, truncations, snapshots beside writers."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import psycopg
import pyarrow as pa
import pytest
from psycopg.sql import SQL, Identifier

import headwater
from headwater import Pipeline
from headwater.api.captures import workers
from headwater.capture import capture as captures
from headwater.capture import snapshot
from headwater.capture.capture import Capture
from headwater.capture.opening import open_capture
from headwater.capture.postgres.source import object_name
from headwater.capture.writing.captured_table import CapturedTable
from headwater.errors import SourceRefused, SourceUnavailable
from headwater.log import Log

PAGES = CapturedTable(
    "pages",
    "pages",
    pa.schema([("id", pa.int64()), ("views", pa.int64()), ("text", pa.string())]),
    ("id",),
    history=True,
)
LINKS = CapturedTable("links", "links", pa.schema([("id", pa.int64()), ("page", pa.int64())]), ("id",))


@pytest.fixture
def db(database: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("CREATE TABLE pages (id BIGINT PRIMARY KEY, views BIGINT, text TEXT)")
        connection.execute("ALTER TABLE pages ALTER COLUMN text SET STORAGE EXTERNAL")  # never compressed
        connection.execute("CREATE TABLE links (id BIGINT PRIMARY KEY, page BIGINT)")
        yield connection


@pytest.fixture
def log_url(tmp_path: Path) -> str:
    return f"file:{tmp_path / 'log'}"


def opened(database: str, log_url: str, name: str) -> Capture:
    return open_capture(database, log_url, name, [PAGES, LINKS])


def newest(log: Log, topic: str) -> dict[int, tuple[object, ...]]:
    held: dict[int, tuple[object, ...]] = {}
    for row in (row for part in log.read(topic) for row in part.to_pylist()):
        held.pop(row["id"], None)
        if not row["_deleted"]:
            held[row["id"]] = tuple(
                value for key, value in row.items() if key not in ("_deleted", "committed_at")
            )
    return held


def test_the_topics_are_compared_with_the_tables(
    db: psycopg.Connection, database: str, log_url: str, tmp_path: Path
) -> None:
    shop = Pipeline("shop", log=log_url)
    shop.capture("cms", database)
    shop.table("pages", "id BIGINT, views BIGINT, text STRING", key="id", captured="cms.pages")
    db.execute("INSERT INTO pages SELECT n, n, 'page ' || n FROM generate_series(1, 200) n")
    [worker] = workers(shop)
    try:
        worker.catch_up()
        assert [(each.ok, each.equal) for each in headwater.verify_source(shop)] == [(True, 200)]
        with headwater.open(log_url) as log, log.producer("pages") as somebody:
            somebody.delete(7)
        assert [each.counts["missing"] for each in headwater.verify_source(shop)] == [1]
    finally:
        headwater.drop_capture(database, "shop.cms")


def same(db: psycopg.Connection, log_url: str) -> None:
    """Check that the topics are the tables."""
    with headwater.open(log_url) as log:
        for topic, query in (
            ("pages", "SELECT id, views, text FROM pages"),
            ("links", "SELECT id, page FROM links"),
        ):
            assert newest(log, topic) == {row[0]: row for row in db.execute(query).fetchall()}


def text(number: int) -> str:
    return f"{number} " + "lorem ipsum " * 1000


def test_large_values_that_are_not_sent_again_are_those_of_the_last_row(
    db: psycopg.Connection, database: str, log_url: str, name: str
) -> None:
    db.execute("INSERT INTO pages VALUES (1, 0, %s), (2, 0, 'short')", [text(1)])
    with opened(database, log_url, name) as capture:
        capture.catch_up()
        db.execute("UPDATE pages SET views = views + 1")
        db.execute("UPDATE pages SET id = 3 WHERE id = 1")
        db.execute("INSERT INTO pages VALUES (4, 0, %s)", [text(4)])
        with db.transaction():
            db.execute("UPDATE pages SET views = 7 WHERE id = 4")
            db.execute("UPDATE pages SET text = %s WHERE id = 4", [text(44)])
            db.execute("UPDATE pages SET id = 5 WHERE id = 4")
        capture.catch_up()
        same(db, log_url)
    db.execute("UPDATE pages SET views = 100")
    with opened(database, log_url, name) as capture:  # which knows nothing of the rows yet
        capture.catch_up()
    same(db, log_url)
    with headwater.open(log_url) as log:
        rows = [row for part in log.read("pages.changes") for row in part.to_pylist()]
    assert all(row["after"]["text"] for row in rows if row["operation"] != "delete")


def test_large_values_of_changes_that_come_again_when_their_row_is_gone(
    db: psycopg.Connection, database: str, log_url: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    db.execute("INSERT INTO pages VALUES (1, 0, %s), (2, 0, %s), (3, 0, %s)", [text(n) for n in (1, 2, 3)])
    with opened(database, log_url, name) as capture:
        capture.catch_up()
    db.execute("UPDATE pages SET views = views + 1")
    db.execute("DELETE FROM pages WHERE id = 1")
    db.execute("UPDATE pages SET id = 4 WHERE id = 2")
    with opened(database, log_url, name) as capture:
        monkeypatch.setattr(capture, "save", dying(capture.save, 0))  # when all of it is in the topics
        with suppress(KeyboardInterrupt):
            capture.catch_up()
    db.execute("UPDATE pages SET views = views + 1")
    with opened(database, log_url, name) as capture:
        capture.catch_up()
    same(db, log_url)
    with headwater.open(log_url) as log:
        history = [row for part in log.read("pages.changes") for row in part.to_pylist()]
    assert [row["operation"] for row in history] == [
        *3 * ["update"],
        *2 * ["delete"],
        "insert",
        *2 * ["update"],
    ]


def test_large_values_of_rows_that_a_snapshot_has_not_stored_yet(
    db: psycopg.Connection, database: str, log_url: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshot, "CHUNK_ROWS", 2)
    for number in range(6):
        db.execute("INSERT INTO pages VALUES (%s, 0, %s)", [number, text(number)])
    with opened(database, log_url, name) as capture:
        while capture.snapshotting:
            db.execute("UPDATE pages SET views = views + 1")
            capture.step()
            if capture.state.snapshots and capture.state.snapshots["pages"].rows:
                db.execute("UPDATE pages SET id = id - 100 WHERE id = 5")  # to where it has been read
        capture.catch_up()
    same(db, log_url)


def test_a_new_snapshot_does_not_take_values_from_before_a_gap(
    db: psycopg.Connection, database: str, log_url: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshot, "CHUNK_ROWS", 2)
    for number in range(6):
        db.execute("INSERT INTO pages VALUES (%s, 0, %s)", [number, text(number)])
    with opened(database, log_url, name) as capture:
        capture.catch_up()
    with open_capture(database, log_url, name, [LINKS]) as capture:
        db.execute("UPDATE pages SET text = 'new ' || text")  # which is not captured
        capture.catch_up()
    with opened(database, log_url, name) as capture:
        while capture.snapshotting:
            db.execute("UPDATE pages SET views = views + 1")
            capture.step()
        capture.catch_up()
    same(db, log_url)


def test_a_truncation_is_done_once_whenever_it_is_killed(
    db: psycopg.Connection, database: str, log_url: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(database, log_url, name) as capture:
        capture.catch_up()
    db.execute("INSERT INTO pages VALUES (1, 0, 'a'), (2, 0, 'b')")
    with db.transaction():
        db.execute("INSERT INTO pages VALUES (3, 0, 'c')")
        db.execute("INSERT INTO links VALUES (1, 3)")
        db.execute("TRUNCATE pages, links")
        db.execute("INSERT INTO pages VALUES (1, 9, 'again')")
        db.execute("INSERT INTO links VALUES (1, 1)")
    for saves in range(1, 6):  # dies behind so many of them
        with opened(database, log_url, name) as capture:
            monkeypatch.setattr(capture, "save", dying(capture.save, saves))
            with suppress(KeyboardInterrupt):
                capture.catch_up()
    with opened(database, log_url, name) as capture:
        capture.catch_up()
    same(db, log_url)


def dying(save: Callable[[], None], behind: int) -> Callable[[], None]:
    """Return what saves so many times, and then is killed."""
    left = iter(range(behind))

    def saved() -> None:
        if next(left, None) is None:
            raise KeyboardInterrupt
        save()

    return saved


def test_a_snapshot_is_made_while_others_write(
    db: psycopg.Connection, database: str, log_url: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshot, "CHUNK_ROWS", 100)
    db.execute("INSERT INTO pages SELECT n, 0, 'page ' || n FROM generate_series(1, 3000) n")
    stop = threading.Event()

    def write(seed: int) -> None:
        chance = random.Random(seed)
        with psycopg.connect(database) as own:
            while not stop.is_set():
                for _ in range(chance.randint(1, 5)):
                    id = 2 * chance.randrange(1750) + seed  # they do not wait for each other
                    own.execute("DELETE FROM pages WHERE id = %s", [id])
                    if chance.random() < 0.7:
                        own.execute("INSERT INTO pages VALUES (%s, %s, 'new')", [id, chance.randrange(9)])
                chance.choice([own.commit, own.commit, own.rollback])()

    writers = [threading.Thread(target=write, args=(seed,)) for seed in range(2)]
    for writer in writers:
        writer.start()
    try:
        for _ in range(2):  # the second time behind its last chunk
            with opened(database, log_url, name) as capture:
                for _ in range(12):
                    capture.step()
    finally:
        stop.set()
        for writer in writers:
            writer.join()
    with opened(database, log_url, name) as capture:
        capture.catch_up()
    same(db, log_url)


def test_a_key_may_be_declared_in_another_order_and_in_wider_types(
    db: psycopg.Connection, database: str, log_url: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshot, "CHUNK_ROWS", 3)
    db.execute(
        "CREATE TABLE prices (id INT, rate NUMERIC(5, 2), views INT, text TEXT, PRIMARY KEY (id, rate))"
    )
    db.execute("ALTER TABLE prices ALTER COLUMN text SET STORAGE EXTERNAL")
    for number in range(10):
        db.execute("INSERT INTO prices VALUES (%s, 1.5, 0, %s)", [number, text(number)])
    columns = [
        ("id", pa.int64()),
        ("rate", pa.decimal128(12, 4)),
        ("views", pa.int64()),
        ("text", pa.string()),
    ]
    prices = CapturedTable("prices", "prices", pa.schema(columns), ("rate", "id"))
    with open_capture(database, log_url, name, [prices]) as capture:
        while capture.snapshotting:
            capture._snapshots.read(capture._progress("prices"))
            db.execute("UPDATE prices SET views = views + 1")
            db.execute("DELETE FROM prices WHERE id = (SELECT min(id) FROM prices)")
            capture.step()
        db.execute("UPDATE prices SET views = views + 1, id = id + 100")
        capture.catch_up()
    query = "SELECT id, rate, views, text FROM prices"
    with headwater.open(log_url) as log:
        assert newest(log, "prices") == {row[0]: row for row in db.execute(query).fetchall()}


def test_a_table_that_takes_the_place_of_another_is_captured_anew(
    db: psycopg.Connection, database: str, log_url: str, name: str
) -> None:
    db.execute("INSERT INTO pages VALUES (1, 0, 'a'), (2, 0, 'b')")
    with opened(database, log_url, name) as capture:
        capture.catch_up()
        with db.transaction():
            db.execute("CREATE TABLE newer (LIKE pages INCLUDING ALL)")
            db.execute("INSERT INTO newer SELECT * FROM pages WHERE id > 1")
            db.execute("ALTER TABLE pages RENAME TO older")
            db.execute("ALTER TABLE newer RENAME TO pages")
        db.execute("INSERT INTO pages VALUES (3, 0, 'c')")
        capture._watch_at = 0
        with pytest.raises(SourceUnavailable, match="is another one of that name"):
            capture.step()
    with opened(database, log_url, name) as capture:
        capture.catch_up()
        db.execute("INSERT INTO pages VALUES (4, 0, 'd')")
        capture.catch_up()
        same(db, log_url)
        db.execute("DROP TABLE links")
        capture._watch_at = 0
        capture.catch_up()
        assert capture.state.stopped == {"links": "it was dropped or renamed"}
    with opened(database, log_url, name) as capture:
        db.execute("INSERT INTO pages VALUES (5, 0, 'e')")
        capture.catch_up()
    with headwater.open(log_url) as log:
        assert set(newest(log, "pages")) == {2, 3, 4, 5}


def test_the_slot_advances_while_only_other_tables_and_databases_are_written(
    db: psycopg.Connection, database: str, log_url: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(captures, "IDLE_SECONDS", 0.2)
    db.execute("CREATE TABLE others (id BIGINT PRIMARY KEY)")
    query = "SELECT confirmed_flush_lsn FROM pg_replication_slots WHERE slot_name = %s"
    with opened(database, log_url, name) as capture:
        capture.catch_up()
        begun = db.execute("SELECT pg_current_wal_lsn()").fetchone()
        db.execute("INSERT INTO others SELECT n FROM generate_series(1, 10000) n")
        with psycopg.connect(database, dbname="postgres", autocommit=True) as other:
            other.execute("SELECT pg_logical_emit_message(true, 'others', repeat('x', 100000))")
        written = db.execute("SELECT pg_current_wal_lsn()").fetchone()
        assert begun is not None and written is not None
        advanced = "SELECT %s::pg_lsn <= confirmed_flush_lsn FROM pg_replication_slots WHERE slot_name = %s"
        deadline = time.monotonic() + 120
        while db.execute(advanced, (written[0], object_name(name))).fetchone() != (True,):
            capture.step()
            assert time.monotonic() < deadline, db.execute(query, (object_name(name),)).fetchone()
        assert capture.changes == 0


def test_a_table_in_which_nothing_changes_is_marked_by_the_clock_of_the_server(
    db: psycopg.Connection, database: str, log_url: str, name: str
) -> None:
    with opened(database, log_url, name) as capture, headwater.open(log_url) as log:
        capture.catch_up()
        asked = db.execute("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::int8").fetchone()
        assert asked is not None
        deadline = time.monotonic() + 120
        while not any((each.newest or 0) > asked[0] for each in log.appended_ranges("links", 0, 0)):
            db.execute("INSERT INTO pages VALUES (1, 0, '') ON CONFLICT (id) DO UPDATE SET views = 1")
            capture.step()
            assert time.monotonic() < deadline
        assert all(each.mark for each in log.appended_ranges("links", 0, 0))


def test_a_slot_and_a_publication_that_are_given_in_the_url_are_used_and_stay(
    db: psycopg.Connection, database: str, log_url: str, name: str
) -> None:
    url = f"{database}{'&' if '?' in database else '?'}slot={name}&publication={name}"
    capture = headwater.capture_tables(url, "links", log=log_url, name=name)
    with pytest.raises(SourceRefused, match=f'publication "{name}" does not exist'):
        capture.catch_up()
    db.execute(SQL("CREATE PUBLICATION {} FOR TABLE pages").format(Identifier(name)))
    with pytest.raises(SourceRefused) as lacking:
        capture.catch_up()
    assert "it does not have links" in str(lacking.value)
    db.execute(SQL("ALTER PUBLICATION {} ADD TABLE links").format(Identifier(name)))
    with pytest.raises(SourceRefused, match=f'replication slot "{name}" does not exist') as missing:
        capture.catch_up()
    assert "pg_create_logical_replication_slot" in str(missing.value.hint)
    db.execute("SELECT pg_create_logical_replication_slot(%s, 'test_decoding')", (name,))
    with pytest.raises(SourceRefused) as other:
        capture.catch_up()
    assert "its plugin is test_decoding" in str(other.value)
    db.execute("SELECT pg_drop_replication_slot(%s)", (name,))
    db.execute("SELECT pg_create_logical_replication_slot(%s, 'pgoutput')", (name,))
    try:
        db.execute("INSERT INTO links VALUES (1, 7)")
        capture.catch_up()
        with headwater.open(log_url) as log:
            assert newest(log, "links") == {1: (1, 7)}
        headwater.drop_capture(url, name, log_url)
        left = "SELECT count(*) FROM pg_replication_slots WHERE slot_name = %s"
        assert db.execute(left, (name,)).fetchone() == (1,)
        assert db.execute("SELECT count(*) FROM pg_publication WHERE pubname = %s", (name,)).fetchone() == (
            1,
        )
        made = "SELECT count(*) FROM pg_replication_slots WHERE slot_name = %s"
        assert db.execute(made, (object_name(name),)).fetchone() == (0,)
    finally:
        db.execute("SELECT pg_drop_replication_slot(%s)", (name,))
