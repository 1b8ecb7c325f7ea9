"""Spark's own plans, put together from Python: they run as any other, in a session of their own."""

from __future__ import annotations

import pytest
from pyspark.sql import DataFrame, SparkSession

from headwater.engine.plan.catalyst import Catalyst, Plan, listed

SETTINGS = {
    "spark.sql.shuffle.partitions": "3",
    # Either would compute an expression outside of what catches its error.
    "spark.sql.optimizer.excludedRules": "org.apache.spark.sql.catalyst.optimizer.ConvertToLocalRelation",
    "spark.sql.subexpressionElimination.enabled": "false",
}


@pytest.fixture
def catalyst(spark: SparkSession) -> Catalyst:
    return Catalyst(spark, SETTINGS)


@pytest.fixture
def texts(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame([(0, "1"), (1, "two"), (2, None)], "n INT, text STRING")


def plan(rows: DataFrame) -> Plan:
    return rows._jdf.queryExecution().analyzed()


def test_settings_are_those_of_its_own_session_alone(spark: SparkSession, catalyst: Catalyst) -> None:
    name = "spark.sql.shuffle.partitions"
    assert catalyst._session.conf().get(name) == "3"
    assert spark.conf.get(name) != "3"


def test_an_expression_that_would_fail_is_null_where_it_is_tried(
    catalyst: Catalyst, texts: DataFrame
) -> None:
    cast = plan(texts.selectExpr("n", "CAST(text AS INT) AS number"))
    number, child = listed(cast.projectList())[1].child(), cast.children().apply(0)
    tried = catalyst.alias(catalyst.tried(number), "tried")
    fails = catalyst.alias(catalyst.fails([number]), "fails")
    rows = catalyst.frame(catalyst.project([*listed(child.output())[:1], tried, fails], child)).collect()
    assert [tuple(row) for row in rows] == [(0, 1, False), (1, None, True), (2, None, False)]


def test_what_expressions_raise_is_told_by_the_number_of_the_row(
    catalyst: Catalyst, texts: DataFrame
) -> None:
    cast = plan(texts.selectExpr("CAST(text AS INT) AS number"))
    child = cast.children().apply(0)
    said = catalyst.errors(child, listed(child.output())[0], listed(cast.projectList()))
    assert list(said) == [1]
    assert "two" in said[1]


def test_a_step_is_put_over_another_child(catalyst: Catalyst, texts: DataFrame) -> None:
    above = plan(texts.filter("n > 0"))
    below = catalyst.filter(plan(texts.filter("n < 2")).condition(), above.children().apply(0))
    rows = catalyst.frame(catalyst.above(above, below)).collect()
    assert [row.n for row in rows] == [1]
