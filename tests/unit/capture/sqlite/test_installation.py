"""Triggers keep in step with tables that are altered while they are captured."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any

import pytest

from headwater.capture.change import INSERT, READ, UPDATE
from headwater.capture.source import CaptureSource
from headwater.errors import SourceRefused, SourceUnavailable
from source_kit import Replica, SqliteDatabase, drain, told

TABLE = "CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT)"
REMADE = (
    "BEGIN",
    "CREATE TABLE new_t (id INTEGER PRIMARY KEY, a TEXT NOT NULL, c REAL)",
    "INSERT INTO new_t SELECT id, coalesce(a, ''), 0.5 FROM t WHERE id <> 2",
    "DROP TABLE t",
    "ALTER TABLE new_t RENAME TO t",
    "COMMIT",
)
"""How Django, Alembic and SQLite's own manual alter a table."""
MOVED_AWAY = (
    "BEGIN",
    "ALTER TABLE t RENAME TO old_t",
    "CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT NOT NULL, c REAL)",
    "INSERT INTO t SELECT id, coalesce(a, ''), 0.5 FROM old_t WHERE id <> 2",
    "DROP TABLE old_t",
    "COMMIT",
)
"""The same the other way about: the triggers go with the old table."""


def begun(database: SqliteDatabase, table: str = TABLE) -> tuple[CaptureSource, str]:
    database.execute(table)
    source = database.source()
    position = source.begin(["t"], None)
    return source, drain(source, lambda _: None, position)


def rows(source: CaptureSource, position: str) -> list[Any]:
    return [(operation, row) for _, operation, row in told(source, position)]


def test_a_column_that_is_added_comes_from_then_on(database: SqliteDatabase) -> None:
    source, position = begun(database)
    database.execute("INSERT INTO t VALUES (1, 'x')", "ALTER TABLE t ADD COLUMN b INTEGER")
    source.read(0)
    database.execute("INSERT INTO t VALUES (2, 'y', 7)")
    position = source.begin(["t"], position)
    assert rows(source, position) == [(INSERT, (1, "x")), (UPDATE, (1, "x", None)), (INSERT, (2, "y", 7))]


def test_rows_that_were_written_before_it_was_noticed_are_told_again(database: SqliteDatabase) -> None:
    source, position = begun(database)
    database.execute("INSERT INTO t VALUES (1, 'x'), (2, 'y')")
    position = drain(source, lambda _: None, position)
    database.execute("ALTER TABLE t ADD COLUMN b INTEGER DEFAULT 5", "UPDATE t SET b = 7 WHERE id = 1")
    assert rows(source, position) == [(UPDATE, (1, "x")), (UPDATE, (1, "x", 7))]


def test_a_column_that_is_added_while_nothing_captures_is_noticed_at_the_beginning(
    database: SqliteDatabase,
) -> None:
    source, position = begun(database)
    source.close()
    database.execute("ALTER TABLE t ADD COLUMN b INTEGER", "INSERT INTO t VALUES (1, 'x', 7)")
    again = database.source()
    again.begin(["t"], position)
    assert rows(again, position) == [(INSERT, (1, "x")), (UPDATE, (1, "x", 7))]


def test_a_column_that_is_renamed_has_its_new_name_from_then_on(database: SqliteDatabase) -> None:
    source, position = begun(database)
    database.execute("ALTER TABLE t RENAME COLUMN a TO z", "INSERT INTO t VALUES (1, 'x')")
    found: list[Any] = []
    drain(source, lambda delivery: found.extend(delivery.changes), position)
    assert [each.rows.to_pylist() for each in found] == [[{"id": 1, "a": "x"}], [{"id": 1, "z": "x"}]]


def test_a_key_that_is_renamed_goes_on_as_the_key(database: SqliteDatabase) -> None:
    source, position = begun(database, "CREATE TABLE t (id TEXT PRIMARY KEY, a TEXT UNIQUE)")
    database.execute("ALTER TABLE t RENAME COLUMN id TO name", "INSERT INTO t VALUES ('k', 'x')")
    replica = Replica()
    drain(source, replica.apply, position)
    assert replica.rows("t") == [("k", "x")]
    assert source.tables()[0].key == ("name",)


def test_sqlite_refuses_to_drop_a_column_that_is_captured(database: SqliteDatabase) -> None:
    source, position = begun(database)
    with pytest.raises(sqlite3.OperationalError, match="error in trigger headwater_capture_shop"):
        database.execute("ALTER TABLE t DROP COLUMN a")
    database.execute("INSERT INTO t VALUES (1, 'x')")
    assert rows(source, position) == [(INSERT, (1, "x"))]


@pytest.mark.parametrize("migration", [REMADE, MOVED_AWAY])
def test_a_table_that_was_made_anew_is_delivered_anew(
    database: SqliteDatabase, migration: Sequence[str]
) -> None:
    source, position = begun(database)
    database.execute("INSERT INTO t VALUES (1, 'x'), (2, 'y'), (3, NULL)")
    database.execute_together(migration)
    database.execute("INSERT INTO t VALUES (4, 'w', 2.0)")
    found = rows(source, position)
    assert found[3:] == [
        ("truncate", None), (READ, (1, "x", 0.5)), (READ, (3, "", 0.5)), (READ, (4, "w", 2.0))
    ]  # fmt: skip
    database.execute("DELETE FROM t WHERE id = 1")
    replica = Replica()
    source.begin(["t"], position)
    drain(source, replica.apply, position)
    assert replica.rows("t") == database.rows("SELECT * FROM t")


def test_a_table_that_was_made_anew_while_nothing_captures_is_delivered_anew(
    database: SqliteDatabase,
) -> None:
    source, position = begun(database)
    source.close()
    database.execute("INSERT INTO t VALUES (1, 'x')")
    database.execute_together(REMADE)
    database.execute("INSERT INTO t VALUES (9, 'z', 1.0)")
    again, replica = database.source(), Replica()
    again.begin(["t"], position)
    drain(again, replica.apply, position)
    assert replica.rows("t") == [(1, "x", 0.5), (9, "z", 1.0)]


def test_a_unique_index_that_comes_later_hides_nothing(database: SqliteDatabase) -> None:
    source, position = begun(database)
    replica = Replica()
    database.execute("INSERT INTO t VALUES (1, 'x')")
    position = drain(source, replica.apply, position)
    database.execute("CREATE UNIQUE INDEX i ON t (a)", "REPLACE INTO t VALUES (2, 'x')")
    position = drain(source, replica.apply, position)
    assert replica.rows("t") == [(2, "x")]
    database.execute("REPLACE INTO t VALUES (3, 'x')")
    drain(source, replica.apply, position)
    assert replica.rows("t") == [(3, "x")]


def test_an_index_alone_tells_nothing_again(database: SqliteDatabase) -> None:
    source, position = begun(database)
    database.execute("INSERT INTO t VALUES (1, 'x')")
    position = drain(source, lambda _: None, position)
    database.execute("CREATE UNIQUE INDEX i ON t (a)", "CREATE TABLE other (id)", "VACUUM")
    assert rows(source, position) == []


def test_a_table_that_is_gone_is_waited_for(database: SqliteDatabase) -> None:
    source, position = begun(database)
    database.execute("INSERT INTO t VALUES (1, 'x')")
    drain(source, lambda _: None, position)
    database.execute("ALTER TABLE t RENAME TO u")
    with pytest.raises(SourceUnavailable, match='no longer has table "t"') as raised:
        source.read(0)
    assert not isinstance(raised.value, SourceRefused)
    database.execute(TABLE, "INSERT INTO t SELECT id, a || 'y' FROM u")
    replica = Replica()
    source.begin(["t"], position)
    drain(source, replica.apply, position)
    assert replica.rows("t") == [(1, "xy")]
    source.drop()
    assert database.objects() == {"t", "u"}


def test_an_index_over_a_function_of_the_application_is_refused(database: SqliteDatabase) -> None:
    db = database.connect()
    db.create_function("fold", 1, lambda text: text.lower(), deterministic=True)
    db.execute(TABLE)
    db.execute("CREATE UNIQUE INDEX i ON t (fold(a))")
    with pytest.raises(SourceRefused, match='table "t"') as raised:
        database.source().begin(["t"], None)
    assert "fold" in str(raised.value.detail)
    assert database.objects() == {"t", "i"}
    db.execute("INSERT INTO t VALUES (1, 'X')")
    db.close()


def test_tables_that_are_no_longer_captured_lose_their_triggers(database: SqliteDatabase) -> None:
    database.execute(TABLE, "CREATE TABLE u (id INTEGER PRIMARY KEY)")
    source = database.source()
    position = source.begin(["t", "u"], None)
    source.begin(["u"], position)
    assert {name.split(":")[1] for name in database.objects() if name.endswith(":insert")} == {"2"}
