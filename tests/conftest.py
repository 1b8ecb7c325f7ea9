"""Fixtures of all tests: a Kafka broker, a PostgreSQL server, a Spark cluster, started when asked for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

import postgres_server
from kafka_broker import Broker, Missing, running_broker

if TYPE_CHECKING:
    from spark_cluster import Cluster

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


@pytest.fixture(scope="session")
def server() -> Iterator[postgres_server.Server]:
    """A real PostgreSQL server; a test that stops it starts it again."""
    try:
        starting = postgres_server.running_server()
        started = starting.__enter__()
    except postgres_server.Missing as missing:  # neither the machine nor the package has one
        pytest.skip(f"PostgreSQL tests: {missing}")
    yield started
    starting.__exit__(None, None, None)


@pytest.fixture
def database(server: postgres_server.Server) -> Iterator[str]:
    """The URL of a place in the PostgreSQL server that is the test's own."""
    with postgres_server.own_schema(server) as url:
        yield url


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    import spark_cluster  # and with it pyspark, for which most tests need not wait

    try:
        starting = spark_cluster.running_cluster()
        started = starting.__enter__()
    except spark_cluster.Missing as missing:
        pytest.skip(f"cluster tests: {missing}")
    yield started
    starting.__exit__(None, None, None)
