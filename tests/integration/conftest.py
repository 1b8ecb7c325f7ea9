"""A log on the real broker with a topic name of its own for each test."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest

from headwater.log import Log
from headwater.log.open import open as open_log


@pytest.fixture
def kafka(kafka_broker: str) -> Iterator[Log]:
    with open_log(f"kafka://{kafka_broker}") as log:
        yield log


@pytest.fixture
def name() -> str:
    return f"t-{uuid.uuid4().hex[:12]}"
