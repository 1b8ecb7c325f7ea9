"""Every test of this folder runs on every kind of database that can be captured."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from source_kit import Database, MariadbDatabase, SqliteDatabase


@pytest.fixture(params=["sqlite", "mariadb"])
def application(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    made: Database
    if request.param == "mariadb":
        made = MariadbDatabase(
            request.getfixturevalue("mariadb"), request.getfixturevalue("mariadb_database")
        )
    else:
        made = SqliteDatabase(tmp_path / "shop.db")
    yield made
    made.close()
