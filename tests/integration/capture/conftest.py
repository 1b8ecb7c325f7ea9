"""A capture of a database of its own."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest

import headwater


@pytest.fixture
def name(database: str) -> Iterator[str]:
    made = f"t{uuid.uuid4().hex[:12]}"
    yield made
    headwater.drop_capture(database, made)
