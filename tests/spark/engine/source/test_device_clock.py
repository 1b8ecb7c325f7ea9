"""When events happened by devices whose clocks are wrong, as an expression of Spark's."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from headwater import clock
from headwater.schema import TIMESTAMP

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
NAMES = ("occurred", "sent", "received")
TIMES = (None, NOON, NOON - timedelta(minutes=5), NOON - timedelta(days=400), NOON + timedelta(days=90))


@pytest.mark.parametrize(
    "bounds", [{}, {"max_delay": "30 seconds"}, {"max_delay": "1 hour", "max_offset": "1 day"}]
)
def test_spark_gives_what_arrow_gives(spark: SparkSession, bounds: dict[str, Any]) -> None:
    rows = [(occurred, sent, received) for occurred in TIMES for sent in TIMES for received in TIMES]
    columns = [pa.array(each, TIMESTAMP) for each in zip(*rows, strict=True)]
    expected = clock.correct(*columns, **bounds)
    frame = spark.createDataFrame(pa.table(columns, names=list(NAMES)))
    told = frame.select(clock.correct(*map(F.col, NAMES), **bounds).alias("told")).toArrow()["told"]
    assert [field.name for field in told.type] == ["at", "earliest", "latest", "trusted"]
    assert sorted(told.to_pylist(), key=str) == sorted(expected.to_pylist(), key=str)
