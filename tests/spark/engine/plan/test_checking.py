"""What ``headwater check`` finds before anything starts, with the user's own file and line."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from headwater import Pipeline, dedup, latest
from headwater.engine.plan.checking import check
from headwater.engine.runner import Runner
from headwater.errors import PipelineError
from headwater.pipeline import targets


def shop(tmp_path: Path) -> Pipeline:
    pipeline = Pipeline("shop", log=f"file:{tmp_path / 'log'}")
    pipeline.source("orders", "id BIGINT, who STRING, at TIMESTAMP", event_time="at")
    return pipeline


def line(text: str) -> int:
    """Return the number of a line of this file."""
    lines = Path(__file__).read_text().splitlines()
    return next(number for number, each in enumerate(lines, 1) if each.strip() == text)


def test_the_columns_of_every_node_are_told_and_nothing_is_made(spark: SparkSession, tmp_path: Path) -> None:
    pipeline = shop(tmp_path)

    @pipeline.stream(key="who")
    def unique(orders: DataFrame) -> DataFrame:
        return orders.transform(dedup(on="id", within="1 hour"))

    @pipeline.view(key="who")
    def newest(unique: DataFrame) -> DataFrame:
        return unique.transform(latest(by="who")).select("who", F.col("at").alias("seen"))

    found = {name: schema.names for name, schema in check(pipeline, spark).items()}
    assert found == {"unique": ["id", "who", "at"], "newest": ["who", "seen"]}
    assert list(tmp_path.iterdir()) == []


def test_a_key_that_the_result_lacks_is_found(spark: SparkSession, tmp_path: Path) -> None:
    pipeline = shop(tmp_path)

    @pipeline.view(key="customer")
    def orders_by(orders: DataFrame) -> DataFrame:
        return orders

    with pytest.raises(PipelineError, match='view "orders_by" has no column "customer"') as caught:
        check(pipeline, spark)
    assert "its result has id, who, at" in (caught.value.detail or "")


def test_an_error_of_user_code_is_told_with_its_line(spark: SparkSession, tmp_path: Path) -> None:
    pipeline = shop(tmp_path)

    @pipeline.view(key="id")
    def wrong(orders: DataFrame) -> DataFrame:
        return orders.select("id", "amout")  # here

    with pytest.raises(PipelineError, match='view "wrong" failed when it was called') as caught:
        check(pipeline, spark)
    assert str(line('return orders.select("id", "amout")  # here')) in (caught.value.location or "")
    assert "amout" in (caught.value.detail or "")


def test_a_function_that_returns_nothing_is_found(spark: SparkSession, tmp_path: Path) -> None:
    pipeline = shop(tmp_path)

    @pipeline.view(key="id")
    def forgotten(orders: DataFrame) -> None:
        orders.select("id")

    with pytest.raises(PipelineError, match="returned NoneType, not a DataFrame"):
        check(pipeline, spark)


def test_two_stateful_operators_in_one_node_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    pipeline = shop(tmp_path)

    @pipeline.view(key="id")
    def both(orders: DataFrame) -> DataFrame:
        return orders.transform(dedup(on="id", within="1 hour")).transform(latest(by="who"))

    with pytest.raises(PipelineError, match="one stateful operator at the most: dedup and latest"):
        check(pipeline, spark)


def test_an_upstream_behind_an_operator_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    pipeline = shop(tmp_path)
    pipeline.table("customers", "who STRING, city STRING", key="who")

    @pipeline.view(key="id")
    def joined(orders: DataFrame, customers: DataFrame) -> DataFrame:
        return orders.transform(dedup(on="id", within="1 hour")).join(customers, "who")

    with pytest.raises(PipelineError, match="uses an upstream after its operator, dedup"):
        Runner(pipeline, spark=spark)


def test_an_operator_without_event_time_says_what_it_needs(spark: SparkSession, tmp_path: Path) -> None:
    pipeline = shop(tmp_path)

    @pipeline.view(key="id")
    def timeless(orders: DataFrame) -> DataFrame:
        return orders.drop("at").transform(latest(by="who"))

    with pytest.raises(PipelineError, match="these rows have no event time"):
        check(pipeline, spark)


def test_an_operators_unknown_column_is_answered_with_the_nearest(
    spark: SparkSession, tmp_path: Path
) -> None:
    pipeline = shop(tmp_path)

    @pipeline.view(key="id")
    def misspelt(orders: DataFrame) -> DataFrame:
        return orders.transform(latest(by="whoo"))

    with pytest.raises(PipelineError) as caught:
        check(pipeline, spark)
    assert caught.value.hint == 'did you mean "who"?'


@pytest.mark.parametrize("column", ["ctid", "c" * 64])
def test_a_column_that_the_database_cannot_have_is_found(
    spark: SparkSession, tmp_path: Path, column: str
) -> None:
    pipeline = Pipeline("shop", log=f"file:{tmp_path / 'log'}", views="postgresql://shop@127.0.0.1:1/shop")
    pipeline.source("orders", "id BIGINT, who STRING")

    @pipeline.view(key="id")
    def renamed(orders: DataFrame) -> DataFrame:
        return orders.withColumnRenamed("who", column)

    with pytest.raises(PipelineError, match=column[:40]) as caught:
        check(pipeline, spark)
    assert caught.value.hint and "test_checking.py" in str(caught.value)


def test_more_columns_than_the_target_takes_are_found(spark: SparkSession, tmp_path: Path) -> None:
    pipeline = shop(tmp_path)

    @pipeline.sink(targets.sqlite(tmp_path / "wide.db", "wide", "id"))
    def wide(orders: DataFrame) -> DataFrame:
        return orders.select("id", *(F.lit(n).alias(f"c{n}") for n in range(1000)))

    with pytest.raises(PipelineError, match="too many columns"):
        check(pipeline, spark)
    assert not (tmp_path / "wide.db").exists()


def test_a_function_that_ends_the_program_is_refused_with_its_line(
    spark: SparkSession, tmp_path: Path
) -> None:
    pipeline = shop(tmp_path)

    @pipeline.view(key="id")
    def leaving(orders: DataFrame) -> DataFrame:
        sys.exit(0)  # here, too

    for look in (partial(check, pipeline, spark), partial(Runner, pipeline, spark=spark)):
        with pytest.raises(PipelineError, match='view "leaving" ended the program') as caught:
            look()
        assert str(line("sys.exit(0)  # here, too")) in (caught.value.location or "")


def test_what_spark_says_is_told_without_its_codes(spark: SparkSession, tmp_path: Path) -> None:
    pipeline = shop(tmp_path)
    pipeline.sql("seen", "SELECT id, amout FROM orders", key="id")
    with pytest.raises(PipelineError) as caught:
        check(pipeline, spark)
    told = caught.value.detail or ""
    assert "`amout` cannot be resolved. Did you mean" in told
    assert "SQLSTATE" not in told and "[UNRESOLVED" not in told and "\n" not in told
