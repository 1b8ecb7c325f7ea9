"""Marks on columns: one that is found is that of the upstream's own column, under the name it has now."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from headwater.engine.plan.column_marks import event_time_of, key_of
from headwater.engine.plan.empty_stream import empty_stream
from headwater.record import DELETED

TIME = pa.timestamp("us", "UTC")
PEOPLE = pa.schema([("id", pa.int64()), ("name", pa.string()), ("at", TIME), (DELETED, pa.bool_())])


@pytest.fixture
def people(spark: SparkSession) -> DataFrame:
    return empty_stream(spark, PEOPLE, "at", ("id",)).frame


def test_the_event_time_is_found_under_the_name_it_has_now(people: DataFrame) -> None:
    assert event_time_of(people) == "at"
    assert event_time_of(people.withColumnRenamed("at", "moment").filter("id > 1")) == "moment"
    assert event_time_of(people.select(F.col("at").alias("then"), "id")) == "then"


def test_a_time_that_is_computed_is_not_the_event_time(people: DataFrame) -> None:
    assert event_time_of(people.withColumn("at", F.col("at") + F.expr("INTERVAL 1 HOUR"))) is None
    assert event_time_of(people.drop("at")) is None


def test_the_key_of_a_table_is_told_while_its_columns_and_the_mark_are_there(people: DataFrame) -> None:
    assert key_of(people.withColumn("name", F.upper("name"))) == ("id",)
    assert key_of(people.drop("id")) == key_of(people.drop(DELETED)) == ()


def test_a_mark_of_deletions_that_code_has_made_tells_no_key(people: DataFrame) -> None:
    assert key_of(people.withColumn(DELETED, F.lit(False))) == ()
