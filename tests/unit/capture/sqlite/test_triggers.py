"""Triggers write what happened, whatever a table is like and whatever other triggers it has."""

# ruff: noqa: S608  # statements of an application, made of numbers

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given
from hypothesis import strategies as st

from headwater.capture.change import DELETE, INSERT, UPDATE
from soaking import examples
from source_kit import Replica, SqliteDatabase, drain, told

SHAPES = {
    "number": [
        "CREATE TABLE things (id INTEGER PRIMARY KEY, word TEXT UNIQUE COLLATE NOCASE, n INTEGER UNIQUE)"
    ],
    "replacing": [
        "CREATE TABLE things (id INTEGER PRIMARY KEY ON CONFLICT REPLACE,"
        " word TEXT NOT NULL ON CONFLICT REPLACE DEFAULT 'a' UNIQUE ON CONFLICT REPLACE, n INTEGER)"
    ],
    "text": [
        "CREATE TABLE things (id INTEGER UNIQUE, word TEXT NOT NULL COLLATE NOCASE PRIMARY KEY, n INTEGER)"
    ],
    "without rowid": [
        "CREATE TABLE things (id INTEGER, word TEXT COLLATE NOCASE PRIMARY KEY, n INTEGER UNIQUE)"
        " WITHOUT ROWID"
    ],
    "several": [
        "CREATE TABLE things (id INTEGER NOT NULL, word TEXT NOT NULL, n INTEGER, PRIMARY KEY (word, id))",
        "CREATE UNIQUE INDEX one ON things (lower(word) DESC, n + 1) WHERE n > 2",
        "CREATE UNIQUE INDEX other ON things (n DESC, id)",
    ],
    "generated": [
        "CREATE TABLE things (id INTEGER PRIMARY KEY, word TEXT, n INTEGER, both TEXT AS (word || n) UNIQUE)"
    ],
    "computed": [
        "CREATE TABLE things (id INTEGER PRIMARY KEY, word TEXT, n INTEGER,"
        " twice INTEGER GENERATED ALWAYS AS (once * 2) STORED UNIQUE, once INTEGER AS (n + length(word)))",
        "CREATE UNIQUE INDEX i ON things (abs(twice - 1))",
    ],
    "child": [
        "CREATE TABLE things (id INTEGER PRIMARY KEY, word TEXT,"
        " n INTEGER REFERENCES things (id) ON DELETE CASCADE)"
    ],
    "tree": [
        "CREATE TABLE things (id INTEGER PRIMARY KEY, word TEXT UNIQUE,"
        " n INTEGER UNIQUE REFERENCES things (id) ON DELETE CASCADE ON UPDATE CASCADE)"
    ],
    "text tree": [
        "CREATE TABLE things (id INTEGER UNIQUE, word TEXT COLLATE NOCASE PRIMARY KEY,"
        " n INTEGER REFERENCES things (id) ON DELETE CASCADE ON UPDATE SET NULL) WITHOUT ROWID"
    ],
    "list": [
        "CREATE TABLE things (id INTEGER PRIMARY KEY, word TEXT UNIQUE,"
        " n INTEGER UNIQUE REFERENCES things (id) ON DELETE SET NULL)"
    ],
    "busy": [
        "CREATE TABLE things (id INTEGER PRIMARY KEY, word TEXT UNIQUE, n INTEGER)",
        "CREATE TRIGGER one AFTER INSERT ON things BEGIN UPDATE things SET n = n + 1 WHERE id = NEW.id; END",
        "CREATE TRIGGER two AFTER DELETE ON things WHEN OLD.id = 3 BEGIN"
        " INSERT OR IGNORE INTO things VALUES (OLD.id, OLD.word, 100); END",
        "CREATE TRIGGER three AFTER UPDATE OF word ON things BEGIN"
        " DELETE FROM things WHERE id = NEW.id + 1; UPDATE things SET n = 0 WHERE id = NEW.id; END",
    ],
}


NUMBERS = st.integers(0, 4)
WORDS = st.sampled_from(["NULL", "'a'", "'b'", "'A'"])


@st.composite
def statements(draw: st.DrawFn) -> str:
    id, other, word, n = draw(NUMBERS), draw(NUMBERS), draw(WORDS), draw(NUMBERS)
    way = draw(st.sampled_from(["", " OR REPLACE", " OR REPLACE", " OR IGNORE", " OR FAIL"]))
    columns = "(id, word, n)"
    return draw(
        st.sampled_from(
            [
                f"INSERT{way} INTO things {columns} VALUES ({id}, {word}, {n})",
                f"INSERT{way} INTO things {columns} VALUES ({id}, {word}, {n}), ({other}, 'c', NULL)",
                f"INSERT{way} INTO things {columns} SELECT id + 1, word, n FROM things",
                f"INSERT INTO things {columns} VALUES ({id}, {word}, {n}) ON CONFLICT DO NOTHING",
                f"UPDATE{way} things SET id = {other} WHERE id = {id}",
                f"UPDATE{way} things SET word = {word} WHERE id >= {id}",
                f"UPDATE{way} things SET word = upper(word), n = {n} WHERE n < {id}",
                f"UPDATE{way} things SET n = {n}, id = id + 1 WHERE id = {id}",
                f"DELETE FROM things WHERE id = {id}",
                "DELETE FROM things",
            ]
        )
    )


@pytest.mark.parametrize("shape", SHAPES)
@examples(25, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    script=st.lists(st.lists(statements(), min_size=1, max_size=6), min_size=1, max_size=4),
    recursive=st.booleans(),
    triggers_first=st.booleans(),
)
def test_every_shape_of_a_table_is_replayed_from_its_changes(
    database: SqliteDatabase, shape: str, script: list[list[str]], recursive: bool, triggers_first: bool
) -> None:
    made = SHAPES[shape]
    database.execute("DROP TABLE IF EXISTS things", *(made if triggers_first else made[:1]))
    source, replica = database.source("things"), Replica()
    position = source.begin(["things"], None)
    database.execute(*([] if triggers_first else made[1:]))
    position = drain(source, replica.apply, position)
    with closing(database.connect()) as db:
        db.execute(f"PRAGMA recursive_triggers = {recursive}")
        db.execute("PRAGMA foreign_keys = 1")
        for transaction in script:
            for each in ["BEGIN", *transaction, "COMMIT"]:
                attempt(db, each)
            # SQLite 3.40 itself loses rows of an index when an update takes part in its own SET NULL.
            assume(db.execute("PRAGMA integrity_check").fetchone() == ("ok",))
            position = drain(source, replica.apply, position)
            assert replica.rows("things") == sorted(database.rows("SELECT * FROM things"), key=repr)
    source.drop()
    source.close()


def attempt(db: Any, statement: str) -> None:
    try:
        db.execute(statement)
    except (sqlite3.IntegrityError, sqlite3.OperationalError) as error:
        # The application's own triggers may call themselves without end.
        assert isinstance(error, sqlite3.IntegrityError) or "recursion" in str(error)
    except sqlite3.DatabaseError as error:
        assume("malformed" not in str(error))
        raise


def begun(database: SqliteDatabase, *made: str) -> tuple[Any, str]:
    database.execute(*made)
    source = database.source()
    return source, source.begin(["things"], None)


def test_rows_that_are_replaced_for_another_reason_than_their_key_are_deleted(
    database: SqliteDatabase,
) -> None:
    source, position = begun(database, *SHAPES["number"])
    database.execute(
        "INSERT INTO things VALUES (1, 'a', 10), (2, 'b', 20)",
        "INSERT OR REPLACE INTO things VALUES (3, 'A', 20)",
    )
    found = [(operation, row) for _, operation, row in told(source, position)]
    assert sorted(found[2:4]) == [(DELETE, (1, "a", 10)), (DELETE, (2, "b", 20))]
    assert found[4:] == [(INSERT, (3, "A", 20))]


@pytest.mark.parametrize("shape", ["generated", "several", "without rowid", "replacing", "text"])
def test_a_row_in_the_way_is_told_of_whatever_it_has_in_common(database: SqliteDatabase, shape: str) -> None:
    source, position = begun(database, *SHAPES[shape])
    into = "INTO things (id, word, n) VALUES"
    first, second = {
        "several": ("(1, 'a', 7)", "(2, 'A', 7)"),
        "without rowid": ("(1, 'a', 7)", "(1, 'b', 7)"),
        "text": ("(1, 'a', 7)", "(2, 'A', 7)"),
        "replacing": ("(1, 'a', 7)", "(2, NULL, 7)"),
    }.get(shape, ("(1, 'a', 7)", "(2, 'a', 7)"))
    database.execute(f"INSERT {into} {first}", f"REPLACE {into} {second}")
    assert [operation for _, operation, _ in told(source, position)] == [INSERT, DELETE, INSERT]
    replica = Replica()
    source.begin(["things"], position)
    drain(source, replica.apply, position)
    assert replica.rows("things") == database.rows("SELECT * FROM things")


def test_rows_that_stay_are_not_told_of(database: SqliteDatabase) -> None:
    source, position = begun(database, *SHAPES["number"])
    database.execute(
        "INSERT INTO things VALUES (1, 'a', 10)",
        "INSERT OR IGNORE INTO things VALUES (2, 'a', 20)",
        "INSERT INTO things VALUES (2, 'a', 20) ON CONFLICT (word) DO UPDATE SET n = 5",
        "UPDATE things SET id = 7",
        "INSERT INTO things VALUES (3, 'x', 30)",
    )
    assert [(operation, row) for _, operation, row in told(source, position)] == [
        (INSERT, (1, "a", 10)),
        (UPDATE, (1, "a", 5)),
        (DELETE, (1, "a", 5)),
        (INSERT, (7, "a", 5)),
        (INSERT, (3, "x", 30)),
    ]


def test_a_row_that_takes_the_number_of_another_replaces_it(database: SqliteDatabase) -> None:
    source, position = begun(database, "CREATE TABLE things (word TEXT NOT NULL PRIMARY KEY)")
    database.execute(
        "INSERT INTO things (rowid, word) VALUES (1, 'a'), (2, 'b')",
        "REPLACE INTO things (rowid, word) VALUES (1, 'c')",
        "UPDATE OR REPLACE things SET rowid = 2 WHERE word = 'c'",
    )
    found = [(operation, row[0]) for _, operation, row in told(source, position)]
    assert found[2:] == [(DELETE, "a"), (INSERT, "c"), (DELETE, "b"), (UPDATE, "c")]


def test_rows_that_a_replaced_one_takes_along_are_deleted(database: SqliteDatabase) -> None:
    database.execute(
        "CREATE TABLE things (id INTEGER PRIMARY KEY, word TEXT UNIQUE)",
        "CREATE TABLE parts (id INTEGER PRIMARY KEY, thing INTEGER REFERENCES things ON DELETE CASCADE)",
    )
    source = database.source()
    position = source.begin(["things", "parts"], None)
    with closing(database.connect()) as db:
        db.execute("PRAGMA foreign_keys = 1")
        db.execute("INSERT INTO things VALUES (1, 'a')")
        db.execute("INSERT INTO parts VALUES (10, 1), (11, 1)")
        db.execute("REPLACE INTO things VALUES (2, 'a')")
    found = [(name, operation, row[0]) for name, operation, row in told(source, position)]
    assert sorted(found[3:]) == [
        ("parts", DELETE, 10), ("parts", DELETE, 11), ("things", INSERT, 2), ("things", DELETE, 1)
    ]  # fmt: skip


def test_values_arrive_to_the_bit(database: SqliteDatabase) -> None:
    source, position = begun(
        database, "CREATE TABLE things (id INTEGER PRIMARY KEY, i INTEGER, r REAL, t TEXT, b BLOB)"
    )
    rows = [
        (1, 2**63 - 1, 0.1 + 0.2, "a\0b", b"\0\xff"),
        (2, -(2**63), 5e-324, "", b""),
        (3, 0, float("-inf"), "𝄞é", None),
        (4, None, 1.7976931348623157e308, None, bytes(range(256))),
    ]
    with closing(database.connect()) as db:
        db.executemany("INSERT INTO things VALUES (?, ?, ?, ?, ?)", rows)
    assert [row for _, _, row in told(source, position)] == rows


def test_an_update_has_the_row_before(database: SqliteDatabase) -> None:
    source, _ = begun(database, *SHAPES["number"])
    database.execute(
        "INSERT INTO things VALUES (1, 'a', 10)", "UPDATE things SET n = 11", "DELETE FROM things"
    )
    (changes,) = source.read(1).changes
    assert changes.before.to_pylist() == [
        {"id": None, "word": None, "n": None},
        {"id": 1, "word": "a", "n": 10},
        {"id": 1, "word": "a", "n": 11},
    ]


def test_what_an_application_asks_its_connection_is_as_without_triggers(database: SqliteDatabase) -> None:
    begun(database, *SHAPES["number"])
    with closing(database.connect()) as db:
        cursor = db.execute("INSERT INTO things (word) VALUES ('a'), ('b')")
        assert (cursor.rowcount, db.execute("SELECT last_insert_rowid(), changes()").fetchone()) == (
            2,
            (2, 2),
        )
        assert db.execute("UPDATE things SET n = id RETURNING n").fetchall() == [(1,), (2,)]


def test_names_may_have_any_character(database: SqliteDatabase) -> None:
    database.execute(
        'CREATE TABLE "a ""b"" (c)" ("the ""key"", x" INTEGER PRIMARY KEY, "select" TEXT UNIQUE)'
    )
    source = database.source()
    position = source.begin(['a "b" (c)'], None)
    database.execute(
        """INSERT INTO "a ""b"" (c)" VALUES (1, 'x')""", """REPLACE INTO "a ""b"" (c)" VALUES (2, 'x')"""
    )
    assert [row for _, _, row in told(source, position)] == [(1, "x"), (1, "x"), (2, "x")]


def test_triggers_work_for_who_trusts_no_schema_and_attaches_the_file(database: SqliteDatabase) -> None:
    source, position = begun(database, *SHAPES["several"])
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        db.execute("PRAGMA trusted_schema = 0")
        db.execute("ATTACH ? AS shop", (str(database.path),))
        db.execute("CREATE TEMP TABLE things (id)")
        db.execute("INSERT INTO shop.things VALUES (1, 'a', 7)")
        db.execute("REPLACE INTO shop.things VALUES (2, 'A', 7)")
    assert [(operation, row) for _, operation, row in told(source, position)] == [
        (INSERT, (1, "a", 7)), (DELETE, (1, "a", 7)), (INSERT, (2, "A", 7))
    ]  # fmt: skip


def test_a_strict_table_is_captured(database: SqliteDatabase) -> None:
    source, position = begun(database, "CREATE TABLE things (id INT PRIMARY KEY, a ANY, r REAL) STRICT")
    database.execute("INSERT INTO things VALUES (1, 'x', 5)")
    assert [row for _, _, row in told(source, position)] == [(1, "x", 5.0)]
