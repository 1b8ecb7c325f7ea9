"""A store of views in the real server, and a connection beside it that anyone may have."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import psycopg
import pytest

from headwater.views.postgres import PostgresStore
from postgres_server import Server


@pytest.fixture
def store(server: Server) -> Iterator[PostgresStore]:
    with PostgresStore(server.dsn) as store:
        yield store


@pytest.fixture
def name() -> str:
    return f"v_{uuid.uuid4().hex[:12]}"


@pytest.fixture
def db(server: Server) -> Iterator[psycopg.Connection]:
    with psycopg.connect(server.dsn, autocommit=True) as db:
        yield db
