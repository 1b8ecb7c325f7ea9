"""The outbox by itself."""

# ruff: noqa: S608  # names of our own

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest

from headwater.capture.change import SourceColumn, SourceTable
from headwater.capture.sqlite import outbox as outboxes
from headwater.capture.sqlite.connection import SqliteConnection
from headwater.capture.sqlite.object_names import ObjectNames
from headwater.capture.sqlite.outbox import MOST_COLUMNS, Outbox
from headwater.errors import SourceRefused
from source_kit import SqliteDatabase

NAMES = ObjectNames("shop")
TABLE = SourceTable(
    "t", (SourceColumn("id", pa.int64(), "INT", False), SourceColumn("a", pa.string(), "")), ("id",)
)


@pytest.fixture
def outbox(db: SqliteConnection) -> Iterator[Outbox]:
    made = Outbox(db, NAMES)
    with db.transaction():
        made.make()
    yield made


def append(database: SqliteDatabase, source: int, count: int) -> None:
    rows = ", ".join([f"({source}, 0, 1000, 'x')"] * count)
    database.execute(f"INSERT INTO {NAMES.outbox} (source, operation, at, c0) VALUES {rows}")


def test_tables_are_read_back_as_they_were(outbox: Outbox) -> None:
    number = outbox.add_source(TABLE)
    (found,) = outbox.sources()
    assert (found.number, found.table, found.live) == (number, TABLE, True)


def test_the_newest_change_is_never_removed(database: SqliteDatabase, outbox: Outbox) -> None:
    number = outbox.add_source(TABLE)
    append(database, number, 10)
    end = outbox.end()
    outbox.trim(end)
    assert outbox.end() == end
    append(database, number, 1)
    assert outbox.end().id == end.id + 1
    assert [row[0] for row in outbox.read(end.id, end.id + 1, 2)] == [end.id + 1]


def test_many_changes_are_removed_in_steps(
    database: SqliteDatabase, outbox: Outbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outboxes, "_TRIMMED", 7)
    append(database, outbox.add_source(TABLE), 40)
    outbox.trim(outbox.end())
    assert database.rows(f"SELECT count(*) FROM {NAMES.outbox}") == [(1,)]


def test_a_form_that_is_over_goes_with_its_last_change(database: SqliteDatabase, outbox: Outbox) -> None:
    first, second = outbox.add_source(TABLE), outbox.add_source(TABLE)
    append(database, first, 3)
    middle = outbox.end()
    append(database, first, 3)
    outbox.end_source(first)
    append(database, second, 3)
    outbox.trim(middle)
    assert [each.number for each in outbox.sources()] == [first, second]
    outbox.trim(outbox.end())
    assert [each.number for each in outbox.sources()] == [second]


def test_large_changes_come_some_at_a_time(
    database: SqliteDatabase, outbox: Outbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outboxes, "_BLOCK_ROWS", 10)
    monkeypatch.setattr(outboxes, "_BLOCK_BYTES", 100)
    append(database, outbox.add_source(TABLE), 100)
    assert len(outbox.read(1, 101, 1)) == 10


def test_a_database_from_a_backup_is_refused(
    database: SqliteDatabase, outbox: Outbox, db: SqliteConnection
) -> None:
    number = outbox.add_source(TABLE)
    append(database, number, 10)
    end = outbox.end()
    outbox.check(end)
    with pytest.raises(SourceRefused, match="cannot be captured from") as told:
        outbox.check(end._replace(id=end.id + 1))
    assert "restored" in str(told.value.detail)
    with pytest.raises(SourceRefused) as told:
        outbox.check(end._replace(at=end.at + 1))  # written to since it was restored
    assert "not the one it was" in str(told.value.detail)
    with db.transaction():
        outbox.make()
    with pytest.raises(SourceRefused) as told:
        outbox.check(end)
    assert "made anew" in str(told.value.detail)


def test_an_outbox_of_another_version_is_refused(database: SqliteDatabase, outbox: Outbox) -> None:
    database.execute(f"UPDATE {NAMES.about} SET format = 99")
    with pytest.raises(SourceRefused, match="another version"):
        outbox.end()


def test_a_table_with_too_many_columns_is_refused(outbox: Outbox) -> None:
    columns = tuple(SourceColumn(f"a{number}", pa.int64(), "INT") for number in range(MOST_COLUMNS + 1))
    with pytest.raises(SourceRefused, match="columns"):
        outbox.add_source(SourceTable("wide", columns, ("a0",)))


def test_the_size_grows_with_the_changes(database: SqliteDatabase, outbox: Outbox) -> None:
    number = outbox.add_source(TABLE)
    append(database, number, 100)
    few = outbox.retained()
    append(database, number, 900)
    assert outbox.retained() > 5 * few > 500
