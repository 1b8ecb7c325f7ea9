"""What a node's code after its operator makes of results: those on which it fails are named, or set aside."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from headwater import Pipeline, latest
from headwater.engine.batch.inputs import Inputs, declare
from headwater.engine.batch.post_operator import PostOperator
from headwater.errors import PipelineError
from headwater.log.open import open as open_log
from headwater.operators.operator import ERROR
from headwater.pipeline.node import OnError
from spark.engine.batch.planning import planned

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def post_operator(
    spark: SparkSession, url: str, *, on_error: OnError = "dead_letter", most: int = 5
) -> PostOperator:
    pipeline = Pipeline("shop", log=url)
    pipeline.source("orders", "who STRING, amount STRING, at TIMESTAMP", event_time="at")

    @pipeline.view(key="who", on_error=on_error)
    def strict(orders: DataFrame) -> DataFrame:
        return orders.transform(latest(by="who")).selectExpr("who", "CAST(amount AS INT) AS amount")

    with open_log(url) as log:
        for each in pipeline.input_topics:
            declare(log, each)
        inputs = Inputs(spark, pipeline, log)
        return PostOperator(planned(inputs, "strict"), inputs, most)


def results(code: PostOperator, **amounts: str) -> pa.Table:
    assert code.plan.stage is not None
    rows = [{"who": who, "amount": amount, "at": NOON} for who, amount in amounts.items()]
    return pa.Table.from_pylist(rows, schema=code.plan.stage.output)


def test_what_fails_alone_is_set_aside_and_its_key_is_gone(spark: SparkSession, url: str) -> None:
    code = post_operator(spark, url)
    done = code.run(results(code, ada="1", bob="two", cleo="3"))
    assert sorted(done.rows.to_pylist(), key=lambda row: str(row["who"])) == [
        {"who": "ada", "amount": 1, "_deleted": False},
        {"who": "bob", "amount": None, "_deleted": True},
        {"who": "cleo", "amount": 3, "_deleted": False},
    ]
    assert done.rejected is not None
    [dead] = done.rejected.to_pylist()
    assert dead["who"] == "bob" and "two" in dead[ERROR]


def test_where_nothing_is_set_aside_the_first_one_is_named_and_the_node_stops(
    spark: SparkSession, url: str
) -> None:
    code = post_operator(spark, url, on_error="stop")
    with pytest.raises(PipelineError, match="failed on 1 of the results of its latest") as stopped:
        code.run(results(code, ada="1", bob="two"))
    assert "who=bob, amount=two" in str(stopped.value)


def test_code_that_fails_on_more_than_the_limit_is_wrong_itself(spark: SparkSession, url: str) -> None:
    code = post_operator(spark, url, most=1)
    with pytest.raises(PipelineError, match='view "strict" failed'):
        code.run(results(code, ada="one", bob="two"))


def test_no_results_make_no_rows_of_the_nodes_columns(spark: SparkSession, url: str) -> None:
    code = post_operator(spark, url)
    done = code.run(results(code))
    assert (done.rows, done.rejected) == (code.plan.schema.empty_table(), None)
