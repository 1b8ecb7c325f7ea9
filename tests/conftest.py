"""Fixtures of all tests: one Kafka broker for the whole run, started when a test first asks."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import settings

from kafka_broker import Broker, Missing, running_broker

settings.register_profile("headwater", deadline=None)  # how long something takes never decides a test
settings.load_profile("headwater")


@pytest.fixture(scope="session")
def broker() -> Iterator[Broker]:
    try:
        starting = running_broker()
        started = starting.__enter__()
    except Missing as missing:  # no Java, or no way to the broker's jars: one line names which
        pytest.skip(f"Kafka tests: {missing}")
    yield started
    starting.__exit__(None, None, None)


@pytest.fixture(scope="session")
def kafka_broker(broker: Broker) -> str:
    """The address of the broker, as host:port."""
    return broker.servers
