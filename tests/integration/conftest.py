"""A log on the real broker with a topic name of its own for each test, and a real PostgreSQL server."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest

from headwater.log import Log
from headwater.log.open import open as open_log
from postgres_server import Missing, Server, running_server


@pytest.fixture
def kafka(kafka_broker: str) -> Iterator[Log]:
    with open_log(f"kafka://{kafka_broker}") as log:
        yield log


@pytest.fixture
def name() -> str:
    return f"t-{uuid.uuid4().hex[:12]}"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    try:
        starting = running_server()
        started = starting.__enter__()
    except Missing as missing:  # neither the machine nor the package has one: one line says so
        pytest.skip(f"PostgreSQL tests: {missing}")
    yield started
    starting.__exit__(None, None, None)
