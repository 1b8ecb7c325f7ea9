"""The connection to an application's file."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from headwater.capture.sqlite.connection import SqliteConnection
from headwater.errors import SourceRefused, SourceUnavailable, UsageError
from source_kit import SqliteDatabase


def test_a_file_that_is_missing_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(SourceUnavailable, match="cannot be opened"):
        SqliteConnection(tmp_path / "no.db", 1)
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("no database at all, but long enough to look at\n" * 100)
    with pytest.raises(SourceRefused, match="cannot be captured") as told:
        SqliteConnection(path, 1)
    assert "not a database" in str(told.value.detail)


def test_names_of_files_may_have_any_character(tmp_path: Path) -> None:
    made = SqliteDatabase(tmp_path / "a?b#c%20 d.db")
    made.execute("CREATE TABLE t (id INTEGER PRIMARY KEY)")
    with closing(SqliteConnection(made.path, 1)) as db:
        assert db.value("SELECT count(*) FROM t") == 0


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_file_that_may_not_be_written_is_refused(database: SqliteDatabase) -> None:
    database.execute("PRAGMA journal_mode=DELETE", "CREATE TABLE t (id INTEGER PRIMARY KEY)")
    database.path.chmod(0o444)
    source = database.source()
    assert [each.name for each in source.tables()] == ["t"]
    with pytest.raises(SourceRefused, match="cannot be captured"):
        source.begin(["t"], None)


def test_a_writer_who_never_ends_is_told_of_after_a_while(database: SqliteDatabase) -> None:
    with closing(database.connect()) as writer, closing(SqliteConnection(database.path, 0.05)) as db:
        writer.execute("BEGIN IMMEDIATE")
        with pytest.raises(SourceUnavailable) as told, db.transaction():
            pass
        assert not isinstance(told.value, SourceRefused)
        assert "locked" in str(told.value.detail)


def test_a_transaction_that_fails_changes_nothing(database: SqliteDatabase, db: SqliteConnection) -> None:
    database.execute("CREATE TABLE t (id INTEGER PRIMARY KEY)")
    with pytest.raises(ZeroDivisionError), db.transaction():
        db.execute("INSERT INTO t VALUES (1)")
        1 / 0  # noqa: B018
    assert database.rows("SELECT * FROM t") == []


def test_a_snapshot_sees_one_moment(database: SqliteDatabase, db: SqliteConnection) -> None:
    database.execute("CREATE TABLE t (id INTEGER PRIMARY KEY)")
    with db.snapshot():
        assert db.value("SELECT count(*) FROM t") == 0
        database.execute("INSERT INTO t VALUES (1)")
        assert db.value("SELECT count(*) FROM t") == 0
    assert db.value("SELECT count(*) FROM t") == 1


def test_a_file_that_was_replaced_is_noticed(database: SqliteDatabase, db: SqliteConnection) -> None:
    db.check_file()
    other = database.path.with_name("other.db")
    sqlite3.connect(other).close()
    other.touch()
    other.rename(database.path)
    with pytest.raises(SourceUnavailable, match="was replaced"):
        db.check_file()


def test_text_that_is_no_utf_8_can_be_read(database: SqliteDatabase, db: SqliteConnection) -> None:
    database.execute("CREATE TABLE t (a TEXT)", "INSERT INTO t VALUES (CAST(x'61ff' AS TEXT))")
    assert db.readable(lambda: db.rows("SELECT a FROM t")) == [("a\udcff",)]
    with pytest.raises(SourceRefused, match="no UTF-8"):
        db.rows("SELECT a FROM t")


def test_what_is_closed_says_so(database: SqliteDatabase) -> None:
    db = SqliteConnection(database.path, 1)
    db.close()
    with pytest.raises(UsageError, match="is closed"):
        db.value("SELECT 1")
