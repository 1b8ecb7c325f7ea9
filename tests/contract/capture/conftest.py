"""Every test of this folder runs on every kind of database that can be captured."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from postgres_database import PostgresDatabase
from source_kit import Database, SqliteDatabase


@pytest.fixture(params=["sqlite", "postgres"])
def application(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    made: Database
    if request.param == "postgres":
        made = PostgresDatabase(request.getfixturevalue("server").dsn)
    else:
        made = SqliteDatabase(tmp_path / "shop.db")
    yield made
    made.close()
