"""What a node reads, as a stream without rows: nobody can look at them, and a plan knows them again."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from headwater.engine.plan.catalyst import listed
from headwater.engine.plan.empty_stream import empty_stream, leaf_of
from headwater.record import DELETED

ORDERS = pa.schema([("id", pa.int64()), ("at", pa.timestamp("us", "UTC")), ("tags", pa.list_(pa.string()))])


def leaves(rows: DataFrame) -> set[int | None]:
    found: set[int | None] = set()
    plans = [rows._jdf.queryExecution().analyzed()]
    while plans:
        children = listed(plans[0].children())
        found |= set() if children else {leaf_of(plans[0])}
        plans = [*plans[1:], *children]
    return found


def test_a_blank_has_the_columns_and_cannot_be_looked_at(spark: SparkSession) -> None:
    rows = empty_stream(spark, ORDERS, "at").frame
    assert rows.dtypes == [("id", "bigint"), ("at", "timestamp"), ("tags", "array<string>")]
    assert rows.isStreaming
    with pytest.raises(Exception, match="writeStream"):
        rows.count()


def test_a_blank_is_found_again_in_any_plan_that_is_made_of_it(spark: SparkSession) -> None:
    orders, clicks = empty_stream(spark, ORDERS), empty_stream(spark, ORDERS)
    assert orders.leaf != clicks.leaf
    assert leaves(orders.frame.filter("id > 1").withColumn("n", F.col("id") + 1)) == {orders.leaf}
    assert leaves(orders.frame.union(clicks.frame)) == {orders.leaf, clicks.leaf}
    assert leaves(spark.range(3)) == {None}


def test_only_what_marks_deletions_is_a_table(spark: SparkSession) -> None:
    table = ORDERS.append(pa.field(DELETED, pa.bool_()))
    assert empty_stream(spark, table, key=("id",)).is_table
    assert not empty_stream(spark, ORDERS).is_table
