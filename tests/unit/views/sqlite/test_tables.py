"""The tables of a version: quoted, known again, and compared with what is staged."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.errors import SinkRefused
from headwater.stores.sqlite.connection import Writer
from headwater.values.keyed import declare
from headwater.views.sqlite.tables import Tables, last_change, quoted

TABLES = Tables(7, declare('view "stock"', "n BIGINT, item STRING", "item"))


@pytest.fixture
def db(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    """A connection that changes a new store."""
    writer = Writer(tmp_path / "views.db", "os")
    with writer.transaction() as db:
        yield db
    writer.close()


@given(st.text("\"'`[;-) \nAé", min_size=1))
def test_any_name_is_only_a_name(name: str) -> None:
    db = sqlite3.connect(":memory:")
    db.execute(f"CREATE TABLE t ({quoted(name)} INTEGER)")
    assert [row[1] for row in db.execute("PRAGMA table_info(t)")] == [name]
    db.close()


def staged(db: sqlite3.Connection, *rows: tuple[str, int | None, bool]) -> list[tuple[object, ...]]:
    """Put rows in their places as a commit does; return the changes that were noted."""
    before = last_change(db, TABLES)
    db.executemany(TABLES.put, rows)
    db.execute(TABLES.save_changes, (1,))
    db.execute(TABLES.upsert)
    db.execute(TABLES.delete)
    db.execute(TABLES.clear)
    noted = f"SELECT kind, k0, o0, n0 FROM {TABLES.changes} WHERE number > ? ORDER BY number"  # noqa: S608
    return db.execute(noted, (before,)).fetchall()


def test_only_what_differs_is_noted(db: sqlite3.Connection) -> None:
    TABLES.create(db, first=40)
    TABLES.prepare(db)
    assert staged(db, ("rum", None, False), ("tea", 1, False)) == [
        (0, "rum", None, None),
        (0, "tea", None, 1),
    ]
    assert staged(db, ("rum", None, False), ("tea", 2, False)) == [(1, "tea", 1, 2)]
    assert staged(db, ("gin", None, True), ("tea", None, True)) == [(2, "tea", 2, None)]
    assert last_change(db, TABLES) == 44
    db.execute(TABLES.prune, (43,))
    assert last_change(db, TABLES) == 44, "a number is not used again"


def test_tables_that_were_emptied_or_made_anew_are_refused(db: sqlite3.Connection) -> None:
    TABLES.create(db, first=0)
    TABLES.check(db, filled=False)
    with pytest.raises(SinkRefused, match="is empty"):
        TABLES.check(db, filled=True)
    db.execute(f"DROP TABLE {TABLES.rows}")
    with pytest.raises(SinkRefused, match="is gone"):
        TABLES.check(db, filled=False)
    db.execute(f"CREATE TABLE {TABLES.rows} (theirs)")
    with pytest.raises(SinkRefused, match="is gone"):
        TABLES.check(db, filled=False)


def test_a_table_of_somebody_else_is_not_dropped(db: sqlite3.Connection) -> None:
    TABLES.create(db, first=0)
    db.execute(f"DROP TABLE {TABLES.rows}")
    db.execute(f"CREATE TABLE {TABLES.rows} (theirs)")
    TABLES.drop(db)
    left = db.execute("SELECT name FROM sqlite_master WHERE name LIKE '%_7'").fetchall()
    assert left == [(TABLES.rows,)]


def test_an_order_is_one_index_and_none_takes_it_away(db: sqlite3.Connection) -> None:
    TABLES.create(db, first=0)

    def index() -> list[str]:
        return [name for _, _, name in db.execute("PRAGMA index_info(order_7)")]

    for columns in (["n", "item"], ["item", "n"], ["item", "n"], []):
        TABLES.set_index(db, columns)
        assert index() == columns
