"""What a server must have, and what a slot must still have."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import psycopg
import pytest

import postgres_server
from capture_kit import deliveries, last_position, singles
from headwater.capture.postgres import position as positions
from headwater.capture.postgres import slot as slot_module
from headwater.capture.postgres import source as source_module
from headwater.capture.postgres.source import PostgresSource
from headwater.errors import SourceRefused, SourceUnavailable

Capture = Callable[..., PostgresSource]


@pytest.fixture(autouse=True)
def items(db: psycopg.Connection) -> None:
    db.execute("CREATE TABLE items (id int PRIMARY KEY, name text)")


@pytest.fixture
def role(db: psycopg.Connection, database: str) -> Iterator[str]:
    """The URL of a user who may do nothing yet."""
    db.execute("CREATE ROLE reader LOGIN")
    yield database.replace("postgres@", "reader@")
    db.execute("DROP OWNED BY reader; DROP ROLE reader")


def refusal(action: Callable[[], object]) -> str:
    with pytest.raises(SourceRefused) as refused:
        action()
    assert refused.value.hint
    return str(refused.value)


def test_a_slot_that_is_gone_is_refused(db: psycopg.Connection, capture: Capture) -> None:
    source = capture(name="gone")
    begun = source.begin(["items"], None)
    source.close()
    _drop(db, "headwater_gone")
    said = refusal(lambda: source.begin(["items"], begun))
    assert 'replication slot "headwater_gone" no longer has the changes to go on with' in said
    assert "begin it anew, with new snapshots" in said


def test_a_position_before_what_was_confirmed_is_refused(db: psycopg.Connection, capture: Capture) -> None:
    source = capture()
    begun = source.begin(["items"], None)
    db.execute("INSERT INTO items VALUES (1, 'x')")
    end = last_position(deliveries(source))
    source.confirm(end)
    deadline = time.monotonic() + 120
    while True:
        try:
            source.begin(["items"], begun)
        except SourceRefused as refused:
            assert f"and {positions.text(positions.number(begun))} is asked for" in str(refused)
            break
        assert time.monotonic() < deadline
        source.confirm(end)
    assert source.begin(["items"], end) == end


def test_a_database_that_is_behind_is_refused(capture: Capture) -> None:
    source = capture()
    begun = source.begin(["items"], None)
    ahead = positions.of_system(positions.number(begun) + 2**40, positions.system(begun) or "")
    said = refusal(lambda: source.begin(["items"], ahead))
    assert "is behind what was captured" in said
    assert "it was restored, or a standby without the last changes has taken over" in said


def test_another_server_is_refused(capture: Capture) -> None:
    source = capture()
    begun = source.begin(["items"], None)
    other = positions.of_system(positions.number(begun), "1234")
    assert "is not the database that was captured" in refusal(lambda: source.begin(["items"], other))


def test_a_slot_of_another_plugin_or_database_is_refused(
    db: psycopg.Connection, capture: Capture, database: str
) -> None:
    db.execute("SELECT pg_create_logical_replication_slot('headwater_decoded', 'test_decoding')")
    assert "its plugin is test_decoding" in refusal(lambda: capture(name="decoded").begin(["items"], None))
    db.execute("CREATE DATABASE elsewhere")
    try:
        with psycopg.connect(database.replace("/postgres?", "/elsewhere?"), autocommit=True) as other:
            other.execute("SELECT pg_create_logical_replication_slot('headwater_elsewhere', 'pgoutput')")
        said = refusal(lambda: capture(name="elsewhere").begin(["items"], None))
        assert "it is of another database" in said
    finally:
        _drop(db, "headwater_elsewhere")
        db.execute("DROP DATABASE elsewhere")


def test_a_slot_that_somebody_reads_is_said_to_be_in_use(
    capture: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source_module, "_BUSY_SECONDS", 0.2)
    begun = capture(name="twice").begin(["items"], None)
    with pytest.raises(SourceUnavailable, match='slot "headwater_twice" is in use') as busy:
        capture(name="twice").begin(["items"], begun)
    assert not isinstance(busy.value, SourceRefused)
    assert "process" in str(busy.value.detail)


def test_a_given_slot_is_used_and_stays(db: psycopg.Connection, capture: Capture) -> None:
    source = capture(slot="given_slot")
    assert "create it: SELECT pg_create_logical_replication_slot" in refusal(
        lambda: source.begin(["items"], None)
    )
    db.execute("SELECT pg_create_logical_replication_slot('given_slot', 'pgoutput')")
    source.begin(["items"], None)
    db.execute("INSERT INTO items VALUES (1, 'x')")
    assert len(singles(deliveries(source))) == 1
    source.drop()
    _drop(db, "given_slot")


def test_a_slot_waits_for_open_transactions_and_says_so(
    database: str, capture: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slot_module, "_CREATE_TIMEOUT", "300ms")
    source = capture()
    with psycopg.connect(database) as writer:
        writer.execute("INSERT INTO items VALUES (1, 'open')")
        with pytest.raises(SourceUnavailable, match="cannot be made while older transactions") as waiting:
            source.begin(["items"], None)
        assert not isinstance(waiting.value, SourceRefused)
    source.begin(["items"], None)


def test_a_slot_that_is_there_already_begins_now(db: psycopg.Connection, capture: Capture) -> None:
    source = capture(name="again")
    source.begin(["items"], None)
    db.execute("INSERT INTO items VALUES (1, 'before')")
    source.close()
    again = capture(name="again")
    again.begin(["items"], None)
    db.execute("INSERT INTO items VALUES (2, 'after')")
    assert [each.row for each in singles(deliveries(again))] == [{"id": 2, "name": "after"}]


def test_a_table_that_is_not_there_or_has_no_key_is_refused(db: psycopg.Connection, capture: Capture) -> None:
    db.execute("CREATE TABLE keyless (id int)")
    db.execute("CREATE UNLOGGED TABLE unlogged (id int PRIMARY KEY)")
    assert 'did you mean "items"' in refusal(lambda: capture().begin(["item"], None))
    assert "REPLICA IDENTITY USING INDEX" in refusal(lambda: capture().begin(["keyless"], None))
    assert "SET LOGGED" in refusal(lambda: capture().begin(["unlogged"], None))
    db.execute("UPDATE keyless SET id = 1")  # which a publication without a key would have forbidden


def test_a_user_without_rights_is_told_which_are_needed(
    db: psycopg.Connection, role: str, capture: Capture
) -> None:
    source = capture(role)
    schema = (db.execute("SELECT current_schema()").fetchone() or ("",))[0]
    db.execute(f"GRANT USAGE ON SCHEMA {schema} TO reader")
    assert "ALTER ROLE reader REPLICATION" in refusal(lambda: source.begin(["items"], None))
    db.execute("ALTER ROLE reader REPLICATION")
    said = refusal(lambda: source.begin(["items"], None))
    assert "permission denied for database" in said
    assert "let the owner of the tables do it" in said
    assert "permission denied for table items" in refusal(lambda: source.chunk("items", None, 10))


def test_a_user_may_capture_with_few_rights_where_a_publication_is_given(
    db: psycopg.Connection, role: str, capture: Capture
) -> None:
    schema = (db.execute("SELECT current_schema()").fetchone() or ("",))[0]
    db.execute(f"ALTER ROLE reader REPLICATION; GRANT USAGE ON SCHEMA {schema} TO reader")
    db.execute("GRANT SELECT ON items TO reader; CREATE PUBLICATION for_reader FOR TABLE items")
    try:
        source = capture(role, publication="for_reader")
        source.begin(["items"], None)
        db.execute("INSERT INTO items VALUES (1, 'x')")
        assert len(singles(deliveries(source))) == 1
        assert source.chunk("items", None, 10).rows.num_rows == 1
    finally:
        db.execute("DROP PUBLICATION for_reader")


def test_a_server_without_logical_replication_is_refused_with_what_to_set() -> None:
    with postgres_server.running_server(wal_level="replica") as server, _items(server) as source:
        said = refusal(lambda: source.begin(["items"], None))
        assert "its wal_level is replica" in said
        assert "set wal_level = logical" in said


def test_a_server_that_keeps_little_says_what_it_has_lost() -> None:
    few = {
        "max_replication_slots": 1,
        "max_slot_wal_keep_size": "1MB",
        "max_wal_size": "32MB",
        "min_wal_size": "32MB",
    }
    with postgres_server.running_server(**few) as server, _items(server) as source:
        begun = source.begin(["items"], None)
        with PostgresSource(server.dsn, "another") as another:
            said = refusal(lambda: another.begin(["items"], None))
            assert "all slots of the server are in use" in said
            assert "max_replication_slots" in said
        source.close()
        with psycopg.connect(server.dsn, autocommit=True) as db:
            for _ in range(4):
                db.execute("INSERT INTO items SELECT n, repeat('x', 400) FROM generate_series(1, 30000) n")
                db.execute("TRUNCATE items")
                db.execute("SELECT pg_switch_wal()")
                db.execute("CHECKPOINT")
        assert "more than max_slot_wal_keep_size" in refusal(lambda: source.begin(["items"], begun))
        assert "more than max_slot_wal_keep_size" in refusal(lambda: source.begin(["items"], None))
        source.drop()


def _items(server: postgres_server.Server) -> PostgresSource:
    with psycopg.connect(server.dsn) as db:
        db.execute("CREATE TABLE items (id int PRIMARY KEY, name text)")
    return PostgresSource(server.dsn, "alone")


def _drop(db: psycopg.Connection, slot: str) -> None:
    deadline = time.monotonic() + 120
    while True:
        try:
            db.execute("SELECT pg_drop_replication_slot(%s)", (slot,))
            return
        except psycopg.errors.ObjectInUse:
            assert time.monotonic() < deadline
            time.sleep(0.05)
