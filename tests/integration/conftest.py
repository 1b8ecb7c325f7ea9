"""A log on the real broker with a topic name of its own for each test; and other brokers, when asked for."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest

from headwater.log import Log
from headwater.log.open import open as open_log
from kafka_broker import Brokers, Missing, running_brokers
from kafka_security import SecureBroker, running_secure_broker
from server_process import or_skipped


@pytest.fixture
def kafka(kafka_broker: str) -> Iterator[Log]:
    with open_log(f"kafka://{kafka_broker}") as log:
        yield log


@pytest.fixture(scope="session")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureBroker]:
    """A broker that lets nobody in without a proof."""
    starting = running_secure_broker(tmp_path_factory.mktemp("certificates"))
    with or_skipped("Kafka", starting, Missing) as started:
        yield started


@pytest.fixture(scope="session")
def brokers() -> Iterator[Brokers]:
    """Three brokers; a test that kills one starts it again."""
    with or_skipped("Kafka", running_brokers(), Missing) as started:
        yield started


@pytest.fixture
def name() -> str:
    return f"t-{uuid.uuid4().hex[:12]}"
