"""Code over few rows gives what a job gives, and starts none."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pyarrow as pa
import pytest
from pyspark.errors import ArithmeticException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from headwater import Pipeline, joins, latest
from headwater.engine.exchange.frames import frame
from headwater.engine.plan.empty_stream import empty_stream
from headwater.engine.plan.local_plan import LocalPlan
from headwater.engine.plan.phases import arrow_schema
from headwater.testing.harness import Harness

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
SCHEMA = pa.schema(
    {
        "n": pa.int64(),
        "text": pa.string(),
        "x": pa.float64(),
        "price": pa.decimal128(10, 2),
        "at": pa.timestamp("us", "UTC"),
        "local": pa.timestamp("us"),
        "day": pa.date32(),
        "raw": pa.binary(),
        "tags": pa.list_(pa.string()),
        "nested": pa.struct({"a": pa.int32(), "b": pa.list_(pa.float32())}),
        "counts": pa.map_(pa.string(), pa.int64()),
        "flag": pa.bool_(),
    }
)
ROWS = [
    {
        "n": n,
        "text": f"t{n % 3}",
        "x": n / 7,
        "price": Decimal(n) / 4,
        "at": NOON + timedelta(microseconds=n),
        "local": datetime(2026, 1, 1) + timedelta(hours=n),
        "day": date(2026, 1, 1) + timedelta(days=n),
        "raw": bytes([n]),
        "tags": ["a"] * (n % 3),
        "nested": {"a": n, "b": [0.5] * (n % 2)},
        "counts": {"k": n},
        "flag": n % 2 == 0,
    }
    for n in range(10)
]
TABLE = pa.Table.from_pylist([*ROWS, dict.fromkeys(SCHEMA.names)], SCHEMA)

Code = Callable[[DataFrame], DataFrame]
LOCAL: dict[str, Code] = {
    "everything": lambda rows: rows,
    "a filter": lambda rows: rows.filter("n % 3 = 1"),
    "nothing left": lambda rows: rows.filter("n > 100"),
    "projections and filters": lambda rows: (
        rows.filter("n > 1")
        .withColumn("y", F.col("x") * 2)
        .withColumn("z", F.concat(F.upper("text"), F.lit("!")))
        .filter("y < 2.4")
        .select("z", "at", F.col("nested.a").alias("a"), F.size("tags").alias("tags"))
    ),
    "a union": lambda rows: rows.filter("n < 4").select("n", "text").union(rows.select("n", "text")),
    "a union by name": lambda rows: rows.select("n", "x").unionByName(rows.select("x", "n").filter("n > 3")),
    "times in other forms": lambda rows: rows.select(
        F.date_format("at", "yyyy-MM-dd HH:mm:ss.SSSSSS").alias("text"), F.unix_micros("at").alias("micros")
    ),
    "names that are alike": lambda rows: rows.select(F.col("n").alias("a b"), F.col("x").alias("a.b")),
}
IN_A_JOB: dict[str, Code] = {
    "a function of Python's": lambda rows: rows.select(F.udf(str.upper, "string")("text").alias("text")),
    "a generator": lambda rows: rows.select(F.explode("tags").alias("tag")),
    "rows as Arrow": lambda rows: rows.select("n").mapInArrow(lambda batches: batches, "n BIGINT"),
    "a union with one": lambda rows: rows.select("text").union(rows.select(F.explode("tags"))),
}


def planned(code: Code, spark: SparkSession) -> LocalPlan:
    leaf = empty_stream(spark, SCHEMA)
    return LocalPlan(code(leaf.frame), {leaf.leaf: "rows"})


@pytest.mark.parametrize("case", LOCAL)
def test_rows_are_those_of_a_job(case: str, spark: SparkSession) -> None:
    rows, plan = frame(spark, TABLE, from_arrow_schema(SCHEMA)), planned(LOCAL[case], spark)
    expected = LOCAL[case](rows)
    for _ in range(2):  # a plan is used again
        assert plan.evaluated({"rows": rows}) == expected.toArrow().cast(arrow_schema(expected))


@pytest.mark.parametrize("case", IN_A_JOB)
def test_what_needs_a_job_is_left_to_one(case: str, spark: SparkSession) -> None:
    assert planned(IN_A_JOB[case], spark).evaluated({"rows": frame(spark, TABLE)}) is None


def test_a_row_on_which_code_fails_is_an_error(spark: SparkSession) -> None:
    plan = planned(lambda rows: rows.select((1 / F.col("n")).alias("inverse")), spark)
    with pytest.raises(ArithmeticException, match="DIVIDE_BY_ZERO"):
        plan.evaluated({"rows": frame(spark, TABLE)})


def test_views_with_code_before_and_after_operators_start_no_job(spark: SparkSession, url: str) -> None:
    pipeline = Pipeline("filters", log=url)
    pipeline.source("events", "k BIGINT, x BIGINT, at TIMESTAMP", event_time="at")
    pipeline.table("names", "k BIGINT, name STRING", key="k")

    @pipeline.view(key="k")
    def plain(events: DataFrame) -> DataFrame:
        return events.filter("x % 2 = 0").select("k", "x")

    @pipeline.view(key="k")
    def shouted(names: DataFrame) -> DataFrame:
        return names.withColumn("name", F.upper("name"))

    @pipeline.view(key="k")
    def newest(events: DataFrame) -> DataFrame:
        return events.filter("x > 2").transform(latest(by="k")).withColumn("x", F.col("x") * 10)

    @pipeline.view(key=["k", "x"])
    def named(events: DataFrame, names: DataFrame) -> DataFrame:
        return events.filter("x > 1").transform(joins.lookup(names, on="k"))

    with Harness(pipeline, spark=spark) as harness:
        harness.send("names", [{"k": 1, "name": "ada"}])
        harness.step()
        before = jobs(spark)
        harness.send("events", [{"k": 1, "x": x, "at": NOON + timedelta(seconds=x)} for x in range(5)])
        harness.send("names", [{"k": 2, "name": "bob"}])
        harness.step()
        assert jobs(spark) == before
        assert harness.view("plain") == [{"k": 1, "x": 4}]
        assert harness.view("shouted") == [{"k": 1, "name": "ADA"}, {"k": 2, "name": "BOB"}]
        assert [row["x"] for row in harness.view("newest")] == [40]
        assert [(row["x"], row["name"]) for row in harness.view("named")] == [(x, "ada") for x in (2, 3, 4)]


def jobs(spark: SparkSession) -> int:
    """Return how many jobs Spark has started."""
    return int(spark.sparkContext._jsc.sc().dagScheduler().numTotalJobs())
