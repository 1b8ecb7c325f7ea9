"""Arrow tables as DataFrames.

Spark stops reading a table at its first empty batch that comes after a full one (PySpark 4.3), and says
nothing. Invariant: a DataFrame has all the rows of its table, however they are cut into batches.
"""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType


def frame(spark: SparkSession, rows: pa.Table, schema: StructType | str | None = None) -> DataFrame:
    """Return a table as a DataFrame."""
    filled = pa.Table.from_batches([batch for batch in rows.to_batches() if len(batch)], rows.schema)
    return spark.createDataFrame(filled, schema) if schema is not None else spark.createDataFrame(filled)
