"""What a node reads, as a stream without rows: so that its function can be called, and its plan looked at.

It is a stream in Spark's eyes, which lets nobody look at the rows of one: a function that counts or
collects its rows fails when it is called here, and not in silence with every micro-batch.

Invariant: no log is opened and nothing is read; one is found again in any plan that is made of it.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from headwater.engine.plan.column_marks import marked
from headwater.record import DELETED


@dataclass(frozen=True)
class EmptyStream:
    """Columns, and no rows."""

    frame: DataFrame
    leaf: int
    """By what it is known in plans."""

    @property
    def is_table(self) -> bool:
        """Whether its rows are changes, deletions among them."""
        return DELETED in self.frame.columns


def empty_stream(
    spark: SparkSession, schema: pa.Schema, event_time: str | None = None, key: tuple[str, ...] = ()
) -> EmptyStream:
    """Return a stream with the columns of a schema."""
    session = spark._jsparkSession
    rows = spark.sparkContext._jsc.emptyRDD().rdd()
    columns = session.parseDataType(from_arrow_schema(schema).json())
    frame = DataFrame(session.internalCreateDataFrame(rows, columns, True), spark)
    return EmptyStream(marked(frame, event_time, key), rows.id())


def leaf_of(plan: object) -> int | None:
    """Return by what a leaf of a plan is known, if it may be an empty stream."""
    if plan.nodeName() != "LogicalRDD" or not plan.isStreaming():  # type: ignore[attr-defined]
        return None
    return int(plan.rdd().id())  # type: ignore[attr-defined]
