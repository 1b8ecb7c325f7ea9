"""An application's file, which every test of this folder captures."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from headwater.capture.sqlite.connection import SqliteConnection
from source_kit import SqliteDatabase


@pytest.fixture
def database(tmp_path: Path) -> Iterator[SqliteDatabase]:
    made = SqliteDatabase(tmp_path / "shop.db")
    yield made
    made.close()


@pytest.fixture
def db(database: SqliteDatabase) -> Iterator[SqliteConnection]:
    made = SqliteConnection(database.path, busy_seconds=5)
    yield made
    made.close()
