"""A node's part of a micro-batch: the same rows, whether the driver computes them or Spark's workers."""

from __future__ import annotations

from pathlib import Path
from unittest import mock

import pytest
from pyspark.sql import DataFrame, SparkSession

from headwater import Pipeline, latest
from headwater.engine.batch.inputs import Inputs, declare
from headwater.engine.batch.micro_batch import MicroBatch
from headwater.engine.batch.node_compute import NodeCompute, NodeResult
from headwater.engine.files.local_files import LocalFiles
from headwater.engine.home.checkpoint import Input, InputProgress
from headwater.engine.plan.node_plan import NodePlan
from headwater.engine.stage.bucket_step import StepContext
from headwater.log import Log, Position
from spark.engine.batch.planning import planned

ROWS = [{"id": n % 3, "amount": n} for n in range(9)]
EXPECTED = {
    "copied": sorted((n % 3, n) for n in range(9)),
    "large": sorted((n % 3, n) for n in range(9) if n > 4),
    "newest": [(0, 6), (1, 7), (2, 8)],
    "doubled": [(0, 12), (1, 14), (2, 16)],
}


@pytest.fixture
def inputs(spark: SparkSession, log: Log) -> Inputs:
    pipeline = Pipeline("shop", log=log.url)
    pipeline.source("orders", "id BIGINT, amount BIGINT, at TIMESTAMP", event_time="at")

    @pipeline.stream()
    def copied(orders: DataFrame) -> DataFrame:
        return orders

    @pipeline.stream()
    def large(orders: DataFrame) -> DataFrame:
        return orders.filter("amount > 4")

    @pipeline.view(key="id")
    def newest(orders: DataFrame) -> DataFrame:
        return orders.transform(latest(by="id"))

    @pipeline.view(key="id")
    def doubled(orders: DataFrame) -> DataFrame:
        return orders.transform(latest(by="id")).selectExpr("id", "amount * 2 AS amount")

    for topic in pipeline.input_topics:
        declare(log, topic)
    with log.producer("orders") as producer:
        producer.send_batch([{**row, "at": 1_700_000_000_000_000 + row["amount"]} for row in ROWS])
    return Inputs(spark, pipeline, log)


def between(log: Log, start: int, end: int) -> MicroBatch:
    id = log.topic("orders").id
    before, after = (InputProgress({"orders": Input(Position("orders", {0: at}, id))}) for at in (start, end))
    return MicroBatch(before, after)


def computed(planned: NodePlan, inputs: Inputs, micro_batch: MicroBatch, home: Path) -> NodeResult:
    compute, stage = NodeCompute(planned, inputs, micro_batch), planned.stage
    if stage is None:
        return compute.without_operator()
    context = StepContext(str(home), stage.operator, stage.schema, LocalFiles(home))
    return compute.with_operator(stage, context)


@pytest.mark.parametrize("few", [20_000, 0], ids=["in the driver", "in workers"])
@pytest.mark.parametrize("name", EXPECTED)
def test_rows_are_those_that_the_code_makes(
    log: Log, inputs: Inputs, tmp_path: Path, name: str, few: int
) -> None:
    with mock.patch("headwater.engine.batch.micro_batch.FEW", few):
        done = computed(planned(inputs, name), inputs, between(log, 0, 9), tmp_path)
    assert sorted((row["id"], row["amount"]) for row in done.rows.to_pylist()) == EXPECTED[name]
    assert done.rejected == []
    assert sum(note["rows"] for note in done.notes) == (9 if name in ("newest", "doubled") else 0)
    assert bool(done.buckets) == (name in ("newest", "doubled"))


def test_spark_is_needed_where_there_is_code_or_much_to_compute(log: Log, inputs: Inputs) -> None:
    def needs_spark(name: str, start: int = 0) -> bool:
        return NodeCompute(planned(inputs, name), inputs, between(log, start, 9)).needs_spark

    assert [needs_spark(name) for name in EXPECTED] == [False, True, False, True]
    assert not needs_spark("large", start=9)
    with mock.patch("headwater.engine.batch.micro_batch.FEW", 0):
        assert needs_spark("copied") and needs_spark("newest")
