"""Fixtures of all tests: servers, Spark and a cluster of it, started when asked for."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import TYPE_CHECKING, TypeVar

import opensearch_server
import postgres_server
import pytest
import redis_server
from hypothesis import settings
from kafka_broker import Broker, Missing, running_broker
from schema_registry import running_registry

from soaking import examples

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from spark_cluster import Cluster

S = TypeVar("S")

os.environ.setdefault("HEADWATER_CLASS_ARCHIVE", "use")  # none is made behind the tests' backs
settings.register_profile("headwater", examples(30))
settings.load_profile("headwater")


@contextmanager
def _or_skipped(what: str, starting: AbstractContextManager[S], missing: type[Exception]) -> Iterator[S]:
    """Start a server; where the machine cannot have it, its tests are skipped, and one line tells why."""
    with ExitStack() as stack:
        try:
            started = stack.enter_context(starting)
        except missing as reason:
            pytest.skip(f"{what} tests: {reason}")
        yield started


@pytest.fixture(scope="session")
def broker() -> Iterator[Broker]:
    with _or_skipped("Kafka", running_broker(), Missing) as started:
        yield started


@pytest.fixture(scope="session")
def kafka_broker(broker: Broker) -> str:
    """The address of the broker, as host:port."""
    return broker.servers


@pytest.fixture(scope="session")
def schema_registry() -> Iterator[str]:
    """The URL of a real schema registry."""
    with _or_skipped("schema registry", running_registry(), Missing) as url:
        yield url


@pytest.fixture(scope="session")
def server() -> Iterator[postgres_server.Server]:
    """A real PostgreSQL server; a test that stops it starts it again."""
    with _or_skipped("PostgreSQL", postgres_server.running_server(), postgres_server.Missing) as started:
        yield started


@pytest.fixture
def database(server: postgres_server.Server) -> Iterator[str]:
    """The URL of a place in the PostgreSQL server that is the test's own."""
    with postgres_server.own_schema(server) as url:
        yield url


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The one session of a test process: a second with other settings cannot be had beside it."""
    from headwater.engine.spark.session import session

    # Java lives briefly here: it has no time to gain by compiling well.
    brief = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
    output = tmp_path_factory.mktemp("spark") / "spark.log"
    started = session(master="local[2]", settings=brief, output=output)
    yield started
    started.stop()


@pytest.fixture(scope="session")
def redis() -> Iterator[redis_server.Server]:
    """A real Redis server that syncs each write; a test that kills it starts it again."""
    starting = redis_server.running_server("--appendfsync", "always")
    with _or_skipped("Redis", starting, redis_server.Missing) as started:
        yield started


@pytest.fixture(scope="session")
def opensearch() -> Iterator[opensearch_server.Server]:
    """A real OpenSearch node; a test that kills it starts it again."""
    with _or_skipped("OpenSearch", opensearch_server.running_server(), Missing) as started:
        yield started


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    import spark_cluster  # and with it pyspark, for which most tests need not wait

    with _or_skipped("cluster", spark_cluster.running_cluster(), spark_cluster.Missing) as started:
        yield started
