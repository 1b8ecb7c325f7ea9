"""Fixtures of all tests: servers, Spark and a cluster of it, started when asked for."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

import mariadb_server
import opensearch_server
import postgres_server
import redis_server
import s3_server
from kafka_broker import Broker, Missing, running_broker
from schema_registry import running_registry
from server_process import or_skipped
from soaking import examples

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from spark_cluster import Cluster

os.environ.setdefault("HEADWATER_CLASS_ARCHIVE", "use")  # none is made behind the tests' backs
settings.register_profile("headwater", examples(30))
settings.load_profile("headwater")


@pytest.fixture(scope="session")
def broker() -> Iterator[Broker]:
    with or_skipped("Kafka", running_broker(), Missing) as started:
        yield started


@pytest.fixture(scope="session")
def kafka_broker(broker: Broker) -> str:
    """The address of the broker, as host:port."""
    return broker.servers


@pytest.fixture(scope="session")
def schema_registry() -> Iterator[str]:
    """The URL of a real schema registry."""
    with or_skipped("schema registry", running_registry(), Missing) as url:
        yield url


@pytest.fixture(scope="session")
def server() -> Iterator[postgres_server.Server]:
    """A real PostgreSQL server; a test that stops it starts it again."""
    with or_skipped("PostgreSQL", postgres_server.running_server(), postgres_server.Missing) as started:
        yield started


@pytest.fixture
def database(server: postgres_server.Server) -> Iterator[str]:
    """The URL of a place in the PostgreSQL server that is the test's own."""
    with postgres_server.own_schema(server) as url:
        yield url


@pytest.fixture(scope="session")
def mariadb() -> Iterator[mariadb_server.Server]:
    """A real MariaDB server; a test that stops it starts it again."""
    with or_skipped("MariaDB", mariadb_server.running_server(), mariadb_server.Missing) as started:
        yield started


@pytest.fixture
def mariadb_database(mariadb: mariadb_server.Server) -> Iterator[str]:
    """The name of a database of the MariaDB server that is the test's own."""
    with mariadb_server.own_database(mariadb) as name:
        yield name


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
    with or_skipped("Redis", starting, redis_server.Missing) as started:
        yield started


@pytest.fixture(scope="session")
def s3() -> Iterator[s3_server.Server]:
    """A real S3 server, on loopback."""
    with or_skipped("S3", s3_server.running_server(), s3_server.Missing) as started:
        yield started


@pytest.fixture(scope="session")
def opensearch() -> Iterator[opensearch_server.Server]:
    """A real OpenSearch node; a test that kills it starts it again."""
    with or_skipped("OpenSearch", opensearch_server.running_server(), Missing) as started:
        yield started


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    import spark_cluster  # and with it pyspark, for which most tests need not wait

    with or_skipped("cluster", spark_cluster.running_cluster(), spark_cluster.Missing) as started:
        yield started
