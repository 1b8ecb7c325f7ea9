"""Captures of a test's own, closed at its end; and a connection that writes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from headwater.capture.mysql.source import MySqlSource
from mariadb_server import Server

Capture = Callable[..., MySqlSource]
Execute = Callable[..., list[tuple[Any, ...]]]


@pytest.fixture
def url(mariadb: Server, mariadb_database: str) -> str:
    return mariadb.url(mariadb_database)


@pytest.fixture
def capture(url: str) -> Iterator[Capture]:
    made: list[MySqlSource] = []

    def make(at: str = url) -> MySqlSource:
        made.append(MySqlSource(at, "shop"))
        return made[-1]

    yield make
    for source in made:
        source.close()


@pytest.fixture
def execute(mariadb: Server, mariadb_database: str) -> Iterator[Execute]:
    """Runs statements on one connection, and returns the rows of the last one."""
    with mariadb.connect(mariadb_database) as db:

        def run(*statements: str) -> list[tuple[Any, ...]]:
            rows: list[tuple[Any, ...]] = []
            for each in statements:
                with db.cursor() as cursor:
                    cursor.execute(each)
                    rows = list(cursor.fetchall())
            return rows

        yield run
