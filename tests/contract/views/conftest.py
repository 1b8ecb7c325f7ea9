"""Every test of this folder runs on views in a SQLite file and on views in a real PostgreSQL server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from headwater.views import Store, ViewStore
from headwater.views.postgres import PostgresStore

Reopen = Callable[[], Store]


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """What ``open_views`` takes: a path, or the URL of a database schema of the test's own."""
    if request.param == "sqlite":
        yield str(tmp_path / "views.db")
        return
    yield request.getfixturevalue("database")


@pytest.fixture
def open_store(place: str) -> Reopen:
    """Opens the store, also a second time or in another process."""
    return lambda: PostgresStore(place) if "://" in place else ViewStore(place)


@pytest.fixture
def store(open_store: Reopen) -> Iterator[Store]:
    with open_store() as store:
        yield store
