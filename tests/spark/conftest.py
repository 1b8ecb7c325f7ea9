"""One Spark session for all tests that need one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headwater.engine.spark.session import session


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    # Java lives briefly here: it has no time to gain by compiling well.
    brief = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
    output = tmp_path_factory.mktemp("spark") / "spark.log"
    started = session(master="local[2]", settings=brief, output=output)
    yield started
    started.stop()


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"file:{tmp_path / 'log'}"
