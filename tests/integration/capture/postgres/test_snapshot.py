"""Chunks of a table, beside those who write to it."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import psycopg
import pytest
from psycopg.sql import SQL

import postgres_server
from capture_kit import deliveries, followed, singles
from headwater.capture.postgres.snapshot import key_text, sees
from headwater.capture.postgres.source import PostgresSource
from headwater.errors import SourceRefused

Capture = Callable[..., PostgresSource]


def chunks(source: PostgresSource, table: str, limit: int) -> list[list[dict[str, Any]]]:
    found, after = [], None
    while True:
        chunk = source.chunk(table, after, limit)
        found.append(chunk.rows.to_pylist())
        if chunk.last:
            return found
        after = chunk.after


def test_chunks_are_the_table_in_the_order_of_its_key(db: psycopg.Connection, capture: Capture) -> None:
    db.execute("CREATE TABLE items (id int PRIMARY KEY, name text)")
    db.execute("INSERT INTO items SELECT n, 'n' || n FROM generate_series(25, 1, -1) n")
    found = chunks(capture(), "items", 10)
    assert [len(each) for each in found] == [10, 10, 5]
    assert [row for each in found for row in each] == [{"id": n, "name": f"n{n}"} for n in range(1, 26)]


def test_an_empty_table_has_one_empty_chunk(db: psycopg.Connection, capture: Capture) -> None:
    db.execute("CREATE TABLE items (id int PRIMARY KEY, name text)")
    chunk = capture().chunk("items", None, 10)
    assert (chunk.rows.num_rows, chunk.last, chunk.after) == (0, True, None)
    assert chunk.rows.schema.names == ["id", "name"]


KEYS = {
    "bigint": "n * 10000000000",
    "text": "chr(60 + n) || '''\"\\' || chr(90 - n)",
    'text COLLATE "C"': "chr(120 - n)",
    "numeric": "(n - 6) * 7 / 3.0",
    "numeric(10,3)": "n / 8.0",
    "date": "CASE n WHEN 0 THEN '-infinity'::date WHEN 12 THEN 'infinity' ELSE '2024-01-01'::date + n END",
    "timestamptz": "'2024-01-01 00:00:00.000001+00'::timestamptz + n * interval '1 hour'",
    "timestamp(3)": "'2024-01-01'::timestamp + n * interval '1.5 seconds'",
    "uuid": "md5(n::text)::uuid",
    "bytea": "decode(md5(n::text), 'hex')",
    "float8": "n / 7.0",
    "bool": "n > 6",
    "interval": "(n - 6) * interval '50 hours'",
    "char(6)": "chr(65 + n)",
    "int4[]": "ARRAY[n - 6, 1]",
}


@pytest.mark.parametrize("kind", KEYS)
def test_every_type_of_key_is_gone_on_behind(db: psycopg.Connection, capture: Capture, kind: str) -> None:
    db.execute(f"CREATE TABLE items (b {kind}, a int, c serial, PRIMARY KEY (b, a))")
    numbers = SQL("FROM generate_series(0, 12) n ON CONFLICT DO NOTHING")
    db.execute(SQL("INSERT INTO items SELECT {}, n % 2 {}").format(SQL(KEYS[kind]), numbers))
    db.execute("INSERT INTO items SELECT b, a + 2 FROM items")
    expected = db.execute("SELECT c FROM items ORDER BY b, a").fetchall()
    source = capture()
    for limit in (1, 3, 100):
        assert [(row["c"],) for each in chunks(source, "items", limit) for row in each] == expected


def test_whatever_was_delivered_is_in_a_chunk(
    db: psycopg.Connection, database: str, capture: Capture
) -> None:
    db.execute("CREATE TABLE items (id int PRIMARY KEY, name text)")
    source = capture()
    source.begin(["items"], None)
    stop = threading.Event()

    def write() -> None:
        with psycopg.connect(database, autocommit=True) as writer:
            number = 0
            while not stop.is_set():
                writer.execute("INSERT INTO items VALUES (%s, 'x')", (number := number + 1,))

    threads = [threading.Thread(target=write)]
    threads[0].start()
    try:
        seen: set[int] = set()
        for _ in range(60):
            seen |= {each.row["id"] for each in singles([source.read(1)]) if each.row}
            rows = set(source.chunk("items", None, 1_000_000).rows.column("id").to_pylist())
            assert seen <= rows
    finally:
        stop.set()
        threads[0].join()
    assert len(seen) > 20


def test_chunks_and_changes_together_are_the_table(
    db: psycopg.Connection, database: str, capture: Capture
) -> None:
    db.execute("CREATE TABLE items (id int PRIMARY KEY, name text)")
    db.execute("INSERT INTO items SELECT n, 'first' FROM generate_series(1, 600) n")
    source = capture()
    source.begin(["items"], None)
    stop = threading.Event()
    threads = [threading.Thread(target=_write, args=(database, seed, stop)) for seed in range(2)]
    for thread in threads:
        thread.start()
    try:
        rows = _followed_from_chunks(source, stop)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    rows = followed(deliveries(source), lambda row: row["id"], rows)
    assert {key: row["name"] for key, row in rows.items()} == dict(
        db.execute("SELECT id, name FROM items").fetchall()
    )


def _write(database: str, seed: int, stop: threading.Event) -> None:
    chance = random.Random(seed)
    with psycopg.connect(database, autocommit=True) as writer:
        while not stop.is_set():
            number = chance.randrange(400) * 2 + seed
            writer.execute(
                chance.choice(
                    [
                        "INSERT INTO items VALUES (%(id)s, %(name)s) ON CONFLICT DO NOTHING",
                        "UPDATE items SET name = %(name)s WHERE id = %(id)s",
                        "DELETE FROM items WHERE id = %(id)s",
                    ]
                ),
                {"id": number, "name": f"{chance.random():.6f}"},
            )


def _followed_from_chunks(source: PostgresSource, stop: threading.Event) -> dict[int, dict[str, Any]]:
    """Follow a table as a capture does: rows of a chunk that the stream changes up to its end are dropped."""
    rows: dict[int, dict[str, Any]] = {}
    after: tuple[object, ...] | None = None
    while True:
        chunk = source.chunk("items", after, 50)
        found = deliveries(source, chunk.end)
        changed = {each.row["id"] for each in singles(found) if each.row}
        rows |= {row["id"]: row for row in chunk.rows.to_pylist() if row["id"] not in changed}
        rows = followed(found, lambda row: row["id"], rows)
        if chunk.last:
            return rows
        after = chunk.after


@contextmanager
def _waiting_writer(server: postgres_server.Server) -> Iterator[Callable[[], None]]:
    """Insert a row and let the commit wait for a standby that is away; yield what gives it up."""
    with psycopg.connect(server.dsn, autocommit=True) as db, psycopg.connect(server.dsn) as writer:
        db.execute("ALTER SYSTEM SET synchronous_standby_names = 'away'")
        db.execute("SELECT pg_reload_conf()")
        while db.execute("SHOW synchronous_standby_names").fetchone() != ("away",):
            time.sleep(0.02)
        time.sleep(0.2)  # the writer's process must have read it, too
        writer.execute("INSERT INTO items VALUES (1, 'x')")
        thread = threading.Thread(target=writer.commit)
        thread.start()

        def give_up() -> None:
            db.execute("ALTER SYSTEM RESET synchronous_standby_names")
            db.execute("SELECT pg_reload_conf()")

        try:
            yield give_up
        finally:
            give_up()
            thread.join()


@contextmanager
def _begun() -> Iterator[tuple[postgres_server.Server, PostgresSource]]:
    with postgres_server.running_server() as server, PostgresSource(server.dsn, "waiting") as source:
        with psycopg.connect(server.dsn) as db:
            db.execute("CREATE TABLE items (id int PRIMARY KEY, name text)")
        source.begin(["items"], None)
        yield server, source


def test_a_chunk_waits_until_what_was_delivered_can_be_seen() -> None:
    with _begun() as (server, source), _waiting_writer(server) as give_up:
        delivered: list[Any] = []
        while not delivered:
            delivered = singles([source.read(5)])
        with psycopg.connect(server.dsn) as other:
            assert other.execute("SELECT count(*) FROM items").fetchone() == (0,)
        timer = threading.Timer(0.5, give_up)
        timer.start()
        assert source.chunk("items", None, 10).rows.num_rows == 1
        timer.join()


def test_a_stream_that_begins_waits_until_what_it_leaves_out_can_be_seen() -> None:
    with _begun() as (server, source):
        with _waiting_writer(server) as give_up:
            time.sleep(0.3)
            timer = threading.Timer(0.5, give_up)
            timer.start()
            source.begin(["items"], None)
            chunk = source.chunk("items", None, 10)
            timer.join()
        with psycopg.connect(server.dsn) as db:
            db.execute("INSERT INTO items VALUES (2, 'later')")
        assert chunk.rows.column("id").to_pylist() == [1]
        assert [each.row["id"] for each in singles(deliveries(source)) if each.row] == [2]


def test_rows_are_counted_about(db: psycopg.Connection, capture: Capture) -> None:
    db.execute("CREATE TABLE items (id int PRIMARY KEY)")
    source = capture()
    assert source.count("items") == 0
    db.execute("INSERT INTO items SELECT generate_series(1, 123)")
    assert source.count("items") == 123
    db.execute("INSERT INTO items SELECT generate_series(1000, 40999)")
    assert 20_000 < source.count("items") < 80_000


def test_a_table_that_is_gone_is_refused(db: psycopg.Connection, capture: Capture) -> None:
    db.execute("CREATE TABLE items (id int PRIMARY KEY)")
    source = capture()
    source.begin(["items"], None)
    db.execute("DROP TABLE items")
    with pytest.raises(SourceRefused, match='table "items" does not exist'):
        source.chunk("items", None, 10)


def test_a_snapshot_sees_what_has_ended_before_it() -> None:
    assert sees("100:110:103,105", np.array([99, 101, 104, 109]))
    assert not sees("100:110:103,105", np.array([99, 103]))
    assert not sees("100:110:", np.array([110]))
    assert sees("100:110:", np.array([], np.int64))
    billion = 2**32
    assert sees(f"{billion + 5}:{billion + 7}:", np.array([2**32 - 3, 4]))
    assert not sees(f"{billion + 5}:{billion + 7}:{billion + 6}", np.array([6]))


def test_keys_are_written_as_postgresql_reads_them() -> None:
    assert key_text(b"\x00\xff") == "\\x00ff"
    assert key_text(7) == "7"
