"""A plan that names the rows on which it would fail: what it does not understand fails as it always did."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from headwater.engine.exchange.frames import frame
from headwater.engine.failure.guarded_plan import ROW, failing


@pytest.fixture
def texts(spark: SparkSession) -> DataFrame:
    rows = pa.table({"text": ["1", "two", "3", "four", "0"], ROW: pa.array(range(5), pa.int64())})
    return frame(spark, rows)


def test_a_plan_that_fails_on_nothing_names_no_row(texts: DataFrame) -> None:
    assert failing(texts.filter("text <> ''").selectExpr("length(text) AS n"), 9) == {}


def test_rows_on_which_an_expression_fails_are_named_and_told_if_that_is_asked(texts: DataFrame) -> None:
    numbers = texts.selectExpr("CAST(text AS INT) AS n")
    assert failing(numbers, 9) == {1: "", 3: ""}
    assert "four" in failing(numbers, 9, with_messages=True)[3]


def test_each_row_is_named_for_the_first_step_that_it_fails_in(texts: DataFrame) -> None:
    steps = texts.filter("CAST(text AS INT) >= 0").selectExpr("6 DIV CAST(text AS INT) AS n")
    said = failing(steps, 9, with_messages=True)
    assert list(said) == [1, 3, 4]
    assert "DIVIDE_BY_ZERO" in said[4] and "two" in said[1]


def test_no_more_rows_are_named_than_asked_for_and_the_first_ones(texts: DataFrame) -> None:
    assert list(failing(texts.selectExpr("CAST(text AS INT) AS n"), 1)) == [1]


def test_a_function_of_the_users_reports_its_rows_and_goes_on(texts: DataFrame) -> None:
    said = failing(texts.select(F.udf(lambda text: int(text), "INT")("text").alias("n")), 9)
    assert list(said) == [1, 3]
    assert "ValueError" in said[1]


def test_a_plan_that_makes_other_rows_fails_as_it_always_did(texts: DataFrame) -> None:
    with pytest.raises(Exception, match="CAST_INVALID_INPUT"):
        failing(texts.groupBy().agg(F.sum(F.expr("CAST(text AS INT)"))), 9)
