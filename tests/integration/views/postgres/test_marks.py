"""A name is no proof: what carries no mark of ours stays as it is."""

from __future__ import annotations

import psycopg
import pytest
from psycopg.sql import SQL, Identifier, Literal

from headwater.errors import SinkRefused, UsageError
from headwater.views.postgres import PostgresStore
from postgres_kit import STOCK


def put_aside(db: psycopg.Connection, table: str) -> None:
    """Make a table of a user's own, with a row in it."""
    db.execute(SQL("CREATE TABLE {} (mine TEXT)").format(Identifier(table)))
    db.execute(SQL("INSERT INTO {} VALUES ('precious')").format(Identifier(table)))


def is_there(db: psycopg.Connection, table: str) -> bool:
    return db.execute(SQL("SELECT mine FROM {}").format(Identifier(table))).fetchall() == [("precious",)]


def test_a_users_table_with_the_name_of_the_changes_is_not_taken(
    store: PostgresStore, name: str, db: psycopg.Connection
) -> None:
    put_aside(db, f"{name}_changes")
    with pytest.raises(UsageError, match=r"_changes.*\n.*belongs to no view"):
        store.sink(name, STOCK, "item")
    assert is_there(db, f"{name}_changes") and name not in store.names()


@pytest.mark.parametrize("suffix", ["_changes", ""])
def test_a_users_table_in_the_place_of_ours_is_neither_renamed_nor_dropped(
    store: PostgresStore, name: str, db: psycopg.Connection, suffix: str
) -> None:
    store.sink(name, STOCK, "item")
    db.execute(SQL("DROP TABLE {} CASCADE").format(Identifier(name + suffix)))
    db.execute(SQL("DROP TABLE IF EXISTS {}").format(Identifier(f"{name}_changes")))
    put_aside(db, name + suffix)
    with pytest.raises(UsageError, match="is not the one that Headwater has made"):
        store.sink(name, STOCK, "item")
    store.sink(name, STOCK, "item", version=2)
    with pytest.raises((UsageError, SinkRefused)):
        store.publish(name, 2)
    assert is_there(db, name + suffix)
    if not suffix:
        with pytest.raises(UsageError, match="is not the one"):
            store.drop(name)
    else:
        store.drop(name)
    assert is_there(db, name + suffix)


def test_a_users_table_where_a_version_would_go_stays(
    store: PostgresStore, name: str, db: psycopg.Connection
) -> None:
    store.sink(name, STOCK, "item")
    put_aside(db, f"{name}@1")
    put_aside(db, f"{name}@3")
    with pytest.raises(UsageError, match="cannot be kept in table"):
        store.sink(name, STOCK, "item", version=3)
    store.sink(name, STOCK, "item", version=2)
    with pytest.raises(SinkRefused, match="already exists"):
        store.publish(name, 2)
    assert store.versions(name) == {1: True, 2: False}
    assert is_there(db, f"{name}@1") and is_there(db, f"{name}@3")


def test_a_comment_of_the_users_beside_the_mark_does_no_harm(
    store: PostgresStore, name: str, db: psycopg.Connection
) -> None:
    store.sink(name, STOCK, "item")
    (mark,) = db.execute("SELECT obj_description(%s::regclass)", (name,)).fetchone() or ()
    db.execute(SQL("COMMENT ON TABLE {} IS {}").format(Identifier(name), Literal(f"Stock. {mark}")))
    store.sink(name, STOCK, "item", version=2)
    store.publish(name, 2)
    store.drop(name, 1)
