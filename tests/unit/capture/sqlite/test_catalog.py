"""What the tables of a file are like."""

from __future__ import annotations

import pytest

from headwater.capture.sqlite import catalog
from headwater.capture.sqlite.connection import SqliteConnection
from headwater.errors import SourceRefused
from source_kit import SqliteDatabase


def test_only_tables_of_the_application_are_named(database: SqliteDatabase, db: SqliteConnection) -> None:
    database.execute(
        "CREATE TABLE a (id INTEGER PRIMARY KEY AUTOINCREMENT)",
        "CREATE VIEW b AS SELECT * FROM a",
        "CREATE VIRTUAL TABLE c USING fts5(text)",
        "CREATE TABLE c_of_ours (id INTEGER PRIMARY KEY)",
    )
    database.source().begin(["a"], None)
    assert catalog.table_names(db) == ["a", "c_of_ours"]


@pytest.mark.parametrize(
    ("table", "key", "nullable"),
    [
        ("(id INTEGER PRIMARY KEY, n)", ("id",), False),
        ("(id TEXT PRIMARY KEY, n)", ("id",), True),
        ("(id TEXT PRIMARY KEY, n) WITHOUT ROWID", ("id",), False),
        ("(id TEXT NOT NULL PRIMARY KEY, n)", ("id",), False),
        ("(n, a INT NOT NULL, b INT NOT NULL, PRIMARY KEY (b, a))", ("b", "a"), False),
        ("(n)", (), False),
    ],
)
def test_keys_are_found(
    database: SqliteDatabase, db: SqliteConnection, table: str, key: tuple[str, ...], nullable: bool
) -> None:
    database.execute(f"CREATE TABLE t {table}")
    found = catalog.source_table(db, "t")
    assert found.key == key
    if key:
        assert catalog.table_shape(db, "t").nullable_key == nullable


def test_generated_columns_are_marked(database: SqliteDatabase, db: SqliteConnection) -> None:
    database.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, a AS (id + 1), b INT AS (id) STORED)")
    assert [each.generated for each in catalog.source_table(db, "t").columns] == [False, True, True]


@pytest.mark.parametrize(
    ("table", "count"),
    [
        ("(id INTEGER PRIMARY KEY, n)", 0),
        ("(id INTEGER PRIMARY KEY, n UNIQUE)", 1),
        ("(id TEXT PRIMARY KEY) WITHOUT ROWID", 0),
        ("(id TEXT PRIMARY KEY)", 1),  # a row's number
        ("(id TEXT PRIMARY KEY COLLATE NOCASE) WITHOUT ROWID", 1),
        ("(rowid TEXT PRIMARY KEY, oid, _rowid_)", 0),  # whose numbers nobody can name
    ],
)
def test_what_rows_cannot_have_in_common_is_found(
    database: SqliteDatabase, db: SqliteConnection, table: str, count: int
) -> None:
    database.execute(f"CREATE TABLE t {table}")
    assert len(catalog.table_shape(db, "t").uniques) == count


def test_an_unknown_table_is_refused_with_what_may_be_meant(
    database: SqliteDatabase, db: SqliteConnection
) -> None:
    database.execute("CREATE TABLE customers (id INTEGER PRIMARY KEY)")
    with pytest.raises(SourceRefused, match='has no table "customer"') as told:
        catalog.table_shape(db, "customer")
    assert told.value.hint == 'did you mean "customers"?'
