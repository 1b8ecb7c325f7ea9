"""Triggers of an application beside which a table cannot be captured."""

from __future__ import annotations

import pytest

from headwater.errors import SourceRefused
from source_kit import SqliteDatabase

TABLE = "CREATE TABLE t (id INTEGER PRIMARY KEY, word TEXT UNIQUE)"


@pytest.mark.parametrize(
    ("trigger", "reason"),
    [
        ("AFTER INSERT ON t BEGIN SELECT RAISE(IGNORE); END", "RAISE"),
        ("BEFORE INSERT ON t BEGIN UPDATE t SET word = NULL; END", "writes"),
        ("INSERT ON t BEGIN DELETE FROM t; END", "writes"),
    ],
)
def test_triggers_that_could_hide_a_change_are_refused(
    database: SqliteDatabase, trigger: str, reason: str
) -> None:
    database.execute(TABLE, f"CREATE TRIGGER mine {trigger}")
    with pytest.raises(SourceRefused, match='cannot be captured beside trigger "mine"') as told:
        database.source().begin(["t"], None)
    assert reason in str(told.value.detail)


@pytest.mark.parametrize(
    "trigger",
    [
        "BEFORE INSERT ON t WHEN NEW.id < 0 BEGIN SELECT RAISE(IGNORE); END",
        "BEFORE UPDATE ON t BEGIN SELECT RAISE(ABORT, 'no') WHERE NEW.word = ''; END",
        "AFTER INSERT ON t BEGIN UPDATE t SET word = 'x' WHERE id = NEW.id; END",
        "AFTER DELETE ON t BEGIN INSERT INTO t VALUES (1, 'a'); END",
    ],
)
def test_other_triggers_are_none_of_our_business(database: SqliteDatabase, trigger: str) -> None:
    database.execute(TABLE, f"CREATE TRIGGER mine {trigger}")
    database.source().begin(["t"], None)


def test_such_a_trigger_that_comes_later_stops_the_capture(database: SqliteDatabase) -> None:
    database.execute(TABLE)
    source = database.source()
    source.begin(["t"], None)
    source.read(0)
    database.execute("CREATE TRIGGER mine AFTER UPDATE ON t BEGIN SELECT RAISE(IGNORE); END")
    with pytest.raises(SourceRefused, match="mine"):
        source.read(0)
