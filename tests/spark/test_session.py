"""The Spark session: what it must not trouble people with."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession


def test_a_connection_that_a_stopped_query_closes_is_no_news(
    spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    server = spark.sparkContext._accumulatorServer
    for error, told in ((EOFError, False), (ValueError, True)):
        try:
            raise error
        except (EOFError, ValueError):
            server.handle_error(None, ("127.0.0.1", 0))
        assert (error.__name__ in capsys.readouterr().err) == told
