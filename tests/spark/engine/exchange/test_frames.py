"""Arrow tables as DataFrames: no row is lost, however a table is cut into batches."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from headwater.engine.exchange.frames import frame

FULL = pa.record_batch({"a": pa.array([1, 2, 3])})
NONE = FULL.slice(0, 0)


@pytest.mark.parametrize(
    "batches", [[], [NONE], [FULL, NONE, FULL], [NONE, FULL, NONE, NONE, FULL, NONE, FULL]], ids=len
)
def test_all_rows_are_there(spark: SparkSession, batches: list[pa.RecordBatch]) -> None:
    table = pa.Table.from_batches(batches, FULL.schema)
    assert frame(spark, table).toArrow().to_pylist() == table.to_pylist()
