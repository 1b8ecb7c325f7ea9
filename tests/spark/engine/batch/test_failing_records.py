"""The records of a micro-batch on which a node's code fails before its operator, each by its place."""

from __future__ import annotations

import pytest
from pyspark.sql import DataFrame, SparkSession

from headwater import Pipeline, latest
from headwater.engine.batch import failing_records
from headwater.engine.batch.inputs import Inputs, declare
from headwater.engine.batch.micro_batch import MicroBatch
from headwater.engine.home.checkpoint import Input, InputProgress
from headwater.log import Log, Position
from spark.engine.batch.planning import planned

NODE = "strict"
AMOUNTS = {"orders": ["1", "two", "3", "four"], "refunds": ["1", "2", "zwei"]}


@pytest.fixture
def inputs(spark: SparkSession, log: Log) -> Inputs:
    pipeline = Pipeline("shop", log=log.url)
    for name in AMOUNTS:
        pipeline.source(name, "id BIGINT, amount STRING, at TIMESTAMP", event_time="at")

    @pipeline.view(key="amount")
    def strict(orders: DataFrame, refunds: DataFrame) -> DataFrame:
        both = orders.union(refunds)
        return both.selectExpr("CAST(amount AS INT) AS amount", "at").transform(latest(by="amount"))

    for each in pipeline.input_topics:
        declare(log, each)
        with log.producer(each.topic) as producer:
            producer.send_batch([{"id": n, "amount": text} for n, text in enumerate(AMOUNTS[each.name])])
    return Inputs(spark, pipeline, log)


def between(log: Log, start: int, ends: dict[str, int]) -> MicroBatch:
    def reached(places: dict[str, int]) -> InputProgress:
        return InputProgress(
            {name: Input(Position(name, {0: at}, log.topic(name).id)) for name, at in places.items()}
        )

    return MicroBatch(reached(dict.fromkeys(ends, start)), reached(ends))


def test_records_of_all_inputs_are_named_by_topic_and_offset(log: Log, inputs: Inputs) -> None:
    found = failing_records.find(planned(inputs, NODE), inputs, between(log, 0, {"orders": 4, "refunds": 3}))
    assert [row.source for row in found] == [
        ("orders", 0, 1),
        ("orders", 0, 3),
        ("refunds", 0, 2),
    ]
    assert "two" in found[0].error


def test_only_records_of_the_micro_batch_are_looked_at_and_no_more_than_a_limit(
    log: Log, inputs: Inputs, monkeypatch: pytest.MonkeyPatch
) -> None:
    part = between(log, 2, {"orders": 4, "refunds": 3})
    assert [row.source.offset for row in failing_records.find(planned(inputs, NODE), inputs, part)] == [
        3,
        2,
    ]
    monkeypatch.setattr(failing_records, "MOST", 1)
    assert [row.source.topic for row in failing_records.find(planned(inputs, NODE), inputs, part)] == [
        "orders"
    ]


def test_what_is_set_aside_already_is_not_named_again(log: Log, inputs: Inputs) -> None:
    less = inputs.without({"orders": {0: [1, 3]}})
    assert failing_records.find(planned(less, NODE), less, between(log, 0, {"orders": 4, "refunds": 2})) == []
