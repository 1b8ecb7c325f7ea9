"""The ordinary connection to a database that is captured."""

from __future__ import annotations

import psycopg
import pytest

from headwater.capture.postgres.session import PostgresSession, title_of
from headwater.errors import SourceRefused, SourceUnavailable, UsageError
from server_process import free_ports


def test_a_title_has_no_secret() -> None:
    title = title_of("postgresql://me:secret@db.example:5433/shop?sslpassword=hidden")
    assert title == 'PostgreSQL database "shop" on db.example:5433'
    with pytest.raises(UsageError):
        title_of("postgresql://me:secret@[")


def test_values_look_the_same_whatever_the_user_has_set(database: str, db: psycopg.Connection) -> None:
    session = PostgresSession(
        f"{database}%20-cdatestyle%3DGerman%20-cextra_float_digits%3D-3%20-ctimezone%3DAsia/Tokyo", "it"
    )
    query = (
        "SELECT concat_ws(' ', timestamptz '2024-01-02 00:00+00', 0.1::float8 + 0.2::float8, '\\xff'::bytea)"
    )
    assert session.run(lambda db: db.execute(query).fetchone()) == (
        "2024-01-02 00:00:00+00 0.30000000000000004 \\xff",
    )
    session.close()


def test_a_connection_that_broke_unnoticed_is_made_anew(database: str, db: psycopg.Connection) -> None:
    session = PostgresSession(database, "it")
    mine = session.run(lambda db: db.info.backend_pid)
    db.execute("SELECT pg_terminate_backend(%s, 5000)", (mine,))
    assert session.run(lambda db: db.info.backend_pid) != mine
    session.close()


def test_errors_are_ours(database: str) -> None:
    session = PostgresSession(database, "the database")
    with pytest.raises(SourceRefused, match="the database cannot be captured"):
        session.run(lambda db: db.execute("SELECT nothing"))
    session.close()
    away = PostgresSession(f"postgresql://postgres@127.0.0.1:{free_ports(1)[0]}/postgres", "the database")
    with pytest.raises(SourceUnavailable, match="the database cannot be read"):
        away.run(lambda db: None)
