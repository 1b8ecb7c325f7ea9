"""Every test of this folder runs on every kind of database that can be captured."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from postgres_database import PostgresDatabase
from source_kit import Database, MariadbDatabase, SqliteDatabase


@pytest.fixture(params=["sqlite", "postgres", "mariadb"])
def application(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    made: Database
    if request.param == "postgres":
        made = PostgresDatabase(request.getfixturevalue("server").dsn)
    elif request.param == "mariadb":
        made = MariadbDatabase(
            request.getfixturevalue("mariadb"), request.getfixturevalue("mariadb_database")
        )
    else:
        made = SqliteDatabase(tmp_path / "shop.db")
    yield made
    made.close()
