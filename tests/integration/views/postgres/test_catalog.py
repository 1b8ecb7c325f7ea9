"""Versions of views in PostgreSQL as those see them who select from their tables."""

from __future__ import annotations

import psycopg
import pytest
from psycopg.sql import SQL, Identifier

from headwater.errors import UsageError
from headwater.views import open_views
from headwater.views.postgres import PostgresStore
from postgres_kit import STOCK, selected, stock
from postgres_server import Server, own_schema


def test_the_published_version_has_the_name_of_the_view(
    store: PostgresStore, name: str, db: psycopg.Connection
) -> None:
    old = store.sink(name, STOCK, "item")
    old.begin()
    old.commit(stock(0, tea=1))
    new = store.sink(name, STOCK, "item", version=2)
    new.begin()
    new.commit(stock(0, tea=2))
    assert selected(db, name) == {"tea": 1}
    store.publish(name, 2)
    assert selected(db, name) == {"tea": 2}
    old.commit(stock(1, tea=3))
    assert (selected(db, name), selected(db, f"{name}@1")) == ({"tea": 2}, {"tea": 3})
    store.drop(name, 1)
    tables = db.execute("SELECT relname FROM pg_class WHERE relname LIKE %s AND relkind = 'r'", (f"{name}%",))
    assert {table for (table,) in tables} == {name, f"{name}_changes"}


def test_who_could_read_a_view_can_read_it_after_a_rebuild(
    store: PostgresStore, name: str, db: psycopg.Connection
) -> None:
    reader = Identifier(f"Reader {name}")
    store.sink(name, STOCK, "item")
    db.execute(SQL("CREATE ROLE {}").format(reader))
    for table in (name, f"{name}_changes"):
        db.execute(SQL("GRANT SELECT ON {} TO {}").format(Identifier(table), reader))
    store.sink(name, STOCK, "item", version=2)
    store.publish(name, 2)
    db.execute(SQL("SET ROLE {}").format(reader))
    assert selected(db, name) == {}
    assert db.execute(SQL("SELECT * FROM {}").format(Identifier(f"{name}_changes"))).fetchall() == []


def test_a_database_that_has_never_been_written_to_has_no_views(
    server: Server, db: psycopg.Connection
) -> None:
    db.execute("CREATE DATABASE empty")
    with open_views(server.dsn.removesuffix("postgres") + "empty") as views:
        assert views.names() == []
        with pytest.raises(UsageError, match='no view "stock"'):
            views["stock"]
    db.execute("DROP DATABASE empty")


def test_a_catalog_of_somebody_else_is_not_written_to(server: Server, db: psycopg.Connection) -> None:
    with own_schema(server) as url, psycopg.connect(url, autocommit=True) as own:
        own.execute("CREATE TABLE headwater_sinks (mine TEXT)")
        with PostgresStore(url) as store, pytest.raises(UsageError, match="is not Headwater's"):
            store.sink("orders", STOCK, "item")
