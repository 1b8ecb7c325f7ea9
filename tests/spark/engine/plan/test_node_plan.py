"""What a node turns out to be when its function is called over empty streams: columns, operator, time."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from headwater import Pipeline, latest, record
from headwater.engine.plan.empty_stream import empty_stream
from headwater.engine.plan.node_plan import RESULTS, NodePlan, plan_node
from headwater.errors import PipelineError
from headwater.pipeline.node import Node

Code = Callable[[DataFrame], DataFrame]


def planned(spark: SparkSession, code: Code, upstream: str = "moves") -> NodePlan:
    pipeline = Pipeline("crm")
    pipeline.source("moves", "who STRING, city STRING, at TIMESTAMP", event_time="at")
    pipeline.table("people", "who STRING, city STRING", key="who")

    def of_moves(moves: DataFrame) -> DataFrame:
        return code(moves)

    def of_people(people: DataFrame) -> DataFrame:
        return code(people)

    chosen = of_people if upstream == "people" else of_moves
    pipeline.view(key="who")(chosen)
    node = pipeline[chosen.__name__]
    assert isinstance(node, Node)
    empty_streams = {
        each.name: empty_stream(
            spark, record.read_schema(each.schema, each.compacted), each.event_time, each.key
        )
        for each in pipeline.input_topics
    }
    return plan_node(node, {upstream: pipeline[upstream]}, empty_streams)


def test_inputs_that_no_code_touches_are_direct(spark: SparkSession) -> None:
    found = planned(spark, lambda moves: moves)
    assert (found.direct_inputs, found.stage, found.event_time) == (("moves",), None, "at")
    assert found.schema.names == ["who", "city", "at"]


def test_the_output_is_direct_where_the_results_of_the_operator_are_the_nodes(spark: SparkSession) -> None:
    found = planned(spark, lambda moves: moves.transform(latest(by="who")))
    assert found.stage is not None and found.stage.name == "latest"
    assert (found.direct_inputs, found.direct_output) == (("moves",), True)


def test_code_around_an_operator_is_seen_with_the_columns_that_it_uses(spark: SparkSession) -> None:
    found = planned(
        spark,
        lambda moves: (
            moves.select("who", "at").transform(latest(by="who")).select("who", F.lit(1).alias("n"))
        ),
    )
    assert (found.direct_inputs, found.direct_output) == ((), False)
    assert found.used["moves"] == {"who", "at"}
    assert set(found.leaves.values()) == {"moves", RESULTS}


def test_a_view_of_a_table_is_known_and_its_mark_of_deletions_is_not_stored(spark: SparkSession) -> None:
    found = planned(spark, lambda people: people, "people")
    assert found.table == "people"
    assert (found.schema.names, found.stored.names) == (["who", "city", "_deleted"], ["who", "city"])


def test_an_upstream_behind_the_operator_is_refused(spark: SparkSession) -> None:
    with pytest.raises(PipelineError, match="uses an upstream after its operator, latest"):
        planned(spark, lambda moves: moves.transform(latest(by="who")).union(moves))
