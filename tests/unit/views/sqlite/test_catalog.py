"""Which views a store has, and which version readers see."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from headwater.errors import UsageError
from headwater.stores.sqlite.connection import Writer
from headwater.values.keyed import declare
from headwater.views.sqlite import catalog

STOCK = declare('view "stock"', "item STRING, count BIGINT", "item")


@pytest.fixture
def db(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    """A connection that changes a new store."""
    writer = Writer(tmp_path / "views.db", "os")
    with writer.transaction() as db:
        yield db
    writer.close()


def test_a_views_first_version_is_published_and_the_next_is_not(db: sqlite3.Connection) -> None:
    first, second = (catalog.add(db, "stock", number, STOCK) for number in (1, 2))
    assert (first.published, second.published) == (True, False)
    assert catalog.find(db, "stock") == first
    assert catalog.find(db, "stock", 2) == second
    assert (first.batch, first.epoch, first.positions, first.watermark, first.filled) == (
        -1,
        0,
        (),
        None,
        False,
    )
    assert first.keyed.schema.equals(STOCK.schema)


def test_one_version_is_published_however_often_they_are_switched(db: sqlite3.Connection) -> None:
    for number in (1, 2, 3):
        catalog.add(db, "stock", number, STOCK)
    for number in (2, 2, 3, 1, 3):
        catalog.publish(db, catalog.find(db, "stock", number))
        assert [each.version for each in catalog.of(db, "stock") if each.published] == [number]


def test_the_store_itself_refuses_a_second_published_version(db: sqlite3.Connection) -> None:
    catalog.add(db, "stock", 1, STOCK)
    catalog.add(db, "stock", 2, STOCK)
    with pytest.raises(sqlite3.IntegrityError):
        db.execute("UPDATE views SET published = 1")


def test_a_version_that_was_removed_leaves_no_tables(db: sqlite3.Connection) -> None:
    tables = "SELECT name FROM sqlite_master ORDER BY name"
    before = db.execute(tables).fetchall()
    made = catalog.add(db, "stock", 1, STOCK)
    assert catalog.names(db) == ["stock"]
    assert db.execute(tables).fetchall() != before
    catalog.remove(db, made)
    assert catalog.names(db) == []
    assert db.execute(tables).fetchall() == before
    with pytest.raises(UsageError, match='no view "stock"'):
        catalog.find(db, "stock")
