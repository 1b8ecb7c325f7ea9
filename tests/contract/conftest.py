"""Every test of this folder runs on the memory log, the file log and a real Kafka broker."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import headwater
from contract_kit import Backend
from headwater import Log


@pytest.fixture(params=["memory", "file", pytest.param("kafka", marks=pytest.mark.kafka)])
def backend(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Backend]:
    if request.param == "kafka":
        url = f"kafka://{request.getfixturevalue('kafka_broker')}"
        made = Backend("kafka", headwater.open(url), url)
    elif request.param == "file":
        url = f"file:{tmp_path / 'log'}"
        made = Backend("file", headwater.open(url), url)
    else:
        memory: Any = headwater.open("memory:")
        made = Backend("memory", memory, f"file:{memory.root}")
    yield made
    for log in [*made.opened, made.log]:
        log.close()


@pytest.fixture
def log(backend: Backend) -> Log:
    return backend.log


@pytest.fixture
def name() -> str:
    """A topic name no other test uses: the broker outlives a test."""
    return f"orders-{uuid.uuid4().hex[:12]}"
