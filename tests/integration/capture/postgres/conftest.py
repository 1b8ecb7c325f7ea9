"""Captures of a test's own, removed with all they have made; and a connection that writes."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator

import psycopg
import pytest

from headwater.capture.postgres.source import PostgresSource

Capture = Callable[..., PostgresSource]


@pytest.fixture
def capture(database: str) -> Iterator[Capture]:
    made: list[PostgresSource] = []

    def make(url: str = database, name: str | None = None, **options: str) -> PostgresSource:
        made.append(PostgresSource(url, name or f"t{uuid.uuid4().hex[:12]}", **options))
        return made[-1]

    yield make
    for source in made:
        source.close()
    for source in made:
        source.drop()
        source.close()


@pytest.fixture
def db(database: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(database, autocommit=True) as connection:
        yield connection
