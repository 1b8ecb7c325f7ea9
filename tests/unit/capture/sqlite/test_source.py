"""What is particular to SQLite; what every source does is tested in ``contract``."""

from __future__ import annotations

import shutil
import threading
import time
from contextlib import closing

import pytest
from source_kit import Replica, SqliteDatabase, drain, told

from headwater.capture.sqlite import outbox as outboxes
from headwater.capture.sqlite.source import SqliteSource
from headwater.errors import SourceRefused, SourceUnavailable, UsageError

TABLE = "CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT)"
FILL = (
    "WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2500) INSERT INTO t SELECT i, 'x' FROM n"
)


def test_a_long_transaction_comes_in_several_deliveries_and_ends_with_the_last(
    database: SqliteDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outboxes, "_MOST_ROWS", 1000)
    database.execute(TABLE)
    source = database.source()
    source.begin(["t"], None)
    database.execute(FILL)
    end = source.end()
    first = source.read(1)
    database.execute("INSERT INTO t VALUES (5000, 'later')")
    found = [first, source.read(1), source.read(1)]
    assert [each.position for each in found] == [None, None, end]
    assert {change.transactions.position for each in found for change in each.changes} == {(end,)}
    assert [int(each.changes[0].index[0]) for each in found] == [0, 1000, 2000]
    assert source.read(1).changes[0].index[0] == 0


def test_a_file_that_is_not_in_write_ahead_mode_stays_as_it_is(database: SqliteDatabase) -> None:
    database.execute("PRAGMA journal_mode=DELETE", TABLE)
    source = database.source()
    position = source.begin(["t"], None)
    database.execute("INSERT INTO t VALUES (1, 'x')")
    assert [row for _, _, row in told(source, position)] == [(1, "x")]
    source.confirm(position)
    assert database.rows("PRAGMA journal_mode") == [("delete",)]


def test_reading_does_not_keep_the_write_ahead_log_from_being_reused(database: SqliteDatabase) -> None:
    database.execute(TABLE)
    source = database.source()
    position = source.begin(["t"], None)
    for number in range(3):
        database.execute("DELETE FROM t", FILL)
        position = drain(source, lambda _: None, position)
        source.confirm(position)
        source.chunk("t", None, 10)
        busy, log, moved = database.rows("PRAGMA wal_checkpoint(TRUNCATE)")[0]
        assert (busy, log, moved) == (0, 0, 0), number


def test_a_change_is_read_soon_after_its_commit(database: SqliteDatabase) -> None:
    database.execute(TABLE)
    source = database.source()
    source.begin(["t"], None)
    source.read(0)
    timer = threading.Timer(0.2, database.execute, ["INSERT INTO t VALUES (1, 'x')"])
    timer.start()
    began = time.monotonic()
    assert len(source.read(20).changes) == 1
    assert time.monotonic() - began < 10
    timer.join()


def test_a_database_that_was_restored_is_refused(database: SqliteDatabase) -> None:
    database.execute("PRAGMA journal_mode=DELETE", TABLE)
    with closing(database.source()) as source:
        source.begin(["t"], None)
    backup = database.path.with_name("backup.db")
    shutil.copyfile(database.path, backup)
    database.execute("INSERT INTO t VALUES (1, 'x'), (2, 'y')")
    with closing(database.source()) as source:
        position = source.end()
    shutil.copyfile(backup, database.path)
    with pytest.raises(SourceRefused) as raised:
        database.source().begin(["t"], position)
    assert "restored" in str(raised.value.detail)
    assert "anew" in str(raised.value.hint)
    time.sleep(0.005)  # a history of its own needs a time of its own
    database.execute("INSERT INTO t VALUES (1, 'x'), (2, 'y'), (3, 'z')")
    with pytest.raises(SourceRefused):
        database.source().begin(["t"], position)


def test_a_file_that_is_replaced_at_work_is_noticed(database: SqliteDatabase) -> None:
    database.execute("PRAGMA journal_mode=DELETE", TABLE)
    source = database.source()
    source.begin(["t"], None)
    copy = database.path.with_name("copy.db")
    shutil.copyfile(database.path, copy)
    copy.rename(database.path)
    with pytest.raises(SourceUnavailable, match="replaced"):
        source.read(0)


def test_an_outbox_that_is_dropped_at_work_is_noticed(database: SqliteDatabase) -> None:
    database.execute(TABLE)
    source = database.source()
    source.begin(["t"], None)
    source.read(0)
    database.source().drop()
    with pytest.raises(SourceRefused, match="cannot be captured from"):
        source.read(0)


def test_changes_that_another_capture_of_the_name_has_removed_are_missed(database: SqliteDatabase) -> None:
    database.execute(TABLE)
    source, other = database.source(), database.source()
    position = source.begin(["t"], None)
    source.read(0)
    other.begin(["t"], position)
    database.execute("INSERT INTO t VALUES (1, 'x')", "INSERT INTO t VALUES (2, 'x')")
    other.confirm(drain(other, lambda _: None, position))
    with pytest.raises(SourceRefused, match="removed before they were read"):
        source.read(0)


def test_values_that_do_not_fit_are_told_by_row(database: SqliteDatabase) -> None:
    database.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER, s TEXT)")
    source = database.source()
    source.begin(["t"], None)
    database.execute(
        "INSERT INTO t VALUES (1, 5, 'a')",
        "INSERT INTO t VALUES (2, 'five', 'b')",
        "UPDATE t SET s = x'00ff'",
    )
    (changes,) = source.read(1).changes
    assert dict(changes.unfit) == {
        1: 'column "n" (INTEGER) holds the text five',
        2: 'column "s" (TEXT) holds the bytes 00ff',
        3: 'column "n" (INTEGER) holds the text five',
    }


def test_text_that_is_no_utf_8_is_told_and_nothing_else_is_lost(database: SqliteDatabase) -> None:
    database.execute(TABLE)
    source = database.source()
    source.begin(["t"], None)
    database.execute("INSERT INTO t VALUES (1, 'é'), (2, CAST(x'61ff' AS TEXT))")
    (changes,) = source.read(1).changes
    assert changes.rows.to_pydict() == {"id": [1, 2], "a": ["é", None]}
    assert dict(changes.unfit) == {1: r"""column "a" (TEXT) holds the text 'a\udcff'"""}
    assert source.retained() > 0


def test_a_row_without_a_key_is_told_as_one_that_does_not_fit(database: SqliteDatabase) -> None:
    database.execute("CREATE TABLE t (k TEXT PRIMARY KEY, n INTEGER)")
    source = database.source()
    source.begin(["t"], None)
    database.execute("INSERT INTO t VALUES (NULL, 1), ('a', 2)", "UPDATE t SET k = 'b' WHERE k IS NULL")
    (changes,) = source.read(1).changes
    assert changes.rows.column(0).to_pylist() == [None, "a", "b"]
    assert dict(changes.unfit) == {0: 'column "k" of the key is null'}


def test_several_captures_of_one_table_do_not_mind_each_other(database: SqliteDatabase) -> None:
    database.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT UNIQUE)")
    sources = [database.source("one"), database.source("two")]
    positions = [each.begin(["t"], None) for each in sources]
    database.execute("INSERT INTO t VALUES (1, 'x')", "REPLACE INTO t VALUES (2, 'x')")
    for source, position in zip(sources, positions, strict=True):
        replica = Replica()
        source.confirm(drain(source, replica.apply, position))
        assert replica.rows("t") == [(2, "x")]


def test_a_source_that_has_not_begun_delivers_nothing(database: SqliteDatabase) -> None:
    with pytest.raises(UsageError, match="begun"):
        database.source().read(0)


def test_what_triggers_say_is_understood_by_old_versions_of_sqlite(database: SqliteDatabase) -> None:
    database.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT UNIQUE)")
    database.source().begin(["t"], None)
    made = database.rows("SELECT sql FROM sqlite_master WHERE type = 'trigger'")
    assert not any(word in sql for (sql,) in made for word in ("unixepoch", "subsec", "ON CONFLICT", "->"))


def test_what_is_confirmed_takes_no_room(database: SqliteDatabase) -> None:
    database.execute(TABLE)
    source = database.source()
    position = source.begin(["t"], None)
    database.execute(FILL)
    full = source.retained()
    source.confirm(drain(source, lambda _: None, position))
    assert source.retained() < full / 100


def test_the_title_names_the_file(database: SqliteDatabase) -> None:
    with closing(SqliteSource(database.path, "shop")) as source:
        assert source.title == f'SQLite database "{database.path}"'


def test_confirming_does_not_wait_for_a_long_transaction(database: SqliteDatabase) -> None:
    database.execute(TABLE)
    source = database.source()
    position = source.begin(["t"], None)
    database.execute(FILL)
    position = drain(source, lambda _: None, position)
    full = source.retained()
    with closing(database.connect()) as writer:
        writer.execute("BEGIN IMMEDIATE")
        began = time.monotonic()
        source.confirm(position)
        assert time.monotonic() - began < 20
        assert source.retained() == full
        writer.execute("COMMIT")
    source.confirm(position)
    assert source.retained() < full
