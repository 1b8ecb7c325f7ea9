"""Records on which user code fails: named where the node stops, set aside where it may."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import LongType

import headwater
from headwater import Pipeline, latest, scan
from headwater.engine.batch.post_operator import PostOperator
from headwater.engine.proof.verify import verify
from headwater.engine.runner import Runner
from headwater.errors import PipelineError
from headwater.testing.harness import Harness


def strict(text: str) -> int:
    return int(text)


def orders(on_error: Any) -> Pipeline:
    pipeline = Pipeline("shop")
    pipeline.source("orders", "id BIGINT, amount STRING, at TIMESTAMP", event_time="at")
    number = F.udf(strict, LongType(), useArrow=False)

    @pipeline.view(key="id", on_error=on_error)
    def plain(orders: DataFrame) -> DataFrame:
        return orders.withColumn("amount", number("amount"))

    @pipeline.view(key="id", on_error=on_error)
    def stateful(orders: DataFrame) -> DataFrame:
        return orders.withColumn("amount", number("amount")).transform(latest(by="id"))

    return pipeline


def add(state: dict[str, Any] | None, event: dict[str, Any]) -> dict[str, Any]:
    return {"total": (state or {"total": 0})["total"] + int(event["amount"])}


@pytest.mark.parametrize("few", [20_000, 0], ids=["in the driver", "in workers"])
def test_an_event_on_which_a_fold_fails_is_set_aside_when_its_time_has_come(
    spark: SparkSession, few: int
) -> None:
    pipeline = Pipeline("shop")
    pipeline.source("orders", "id BIGINT, amount STRING, at TIMESTAMP", event_time="at")

    @pipeline.stream(on_error="dead_letter")
    def totals(orders: DataFrame) -> DataFrame:
        return orders.transform(scan(add, by="id", schema="total BIGINT"))

    with mock.patch("headwater.engine.batch.micro_batch.FEW", few), Harness(pipeline, spark=spark) as harness:
        for first in (0, 3):
            events = rows("1", "two", "3", "4", "five", "6")[first : first + 3]
            harness.send("orders", [{**row, "id": 1} for row in events])
            harness.step()
        harness.restart()
        harness.advance(datetime(2026, 1, 1, tzinfo=UTC))
        harness.step()
        assert [row["total"] for row in harness.stream("totals")] == [1, 4, 8, 14]
        dead = harness.dead("totals")
        assert [json.loads(row["record"])["amount"] for row in dead] == ["two", "five"]
        assert [(row["topic"], row["offset"]) for row in dead] == [(None, None)] * 2
        assert "ValueError: invalid literal" in dead[0]["error"]
        harness.verify()


@pytest.mark.parametrize("few", [20_000, 0], ids=["in the driver", "in workers"])
def test_a_fold_that_fails_stops_its_node_and_names_the_line(spark: SparkSession, few: int) -> None:
    pipeline = Pipeline("shop")
    pipeline.source("orders", "id BIGINT, amount STRING, at TIMESTAMP", event_time="at")

    @pipeline.view(key="id")
    def totals(orders: DataFrame) -> DataFrame:
        return orders.transform(scan(add, by="id", schema="total BIGINT"))

    with mock.patch("headwater.engine.batch.micro_batch.FEW", few), Harness(pipeline, spark=spark) as harness:
        harness.send("orders", rows("1", "two", "3"))
        with pytest.raises(PipelineError, match='view "totals" failed: ValueError') as caught:
            harness.step()
        line = add.__code__.co_firstlineno + 1
        assert f"test_dead_letters.py:{line}: invalid literal" in (caught.value.detail or "")


def rows(*amounts: str) -> list[dict[str, Any]]:
    return [{"id": n, "amount": amount, "at": 1_700_000_000_000_000 + n} for n, amount in enumerate(amounts)]


def newest(on_error: Any) -> Pipeline:
    pipeline = Pipeline("shop")
    pipeline.source("orders", "id BIGINT, amount STRING, at TIMESTAMP", event_time="at")

    @pipeline.view(key="id", on_error=on_error)
    def amounts(orders: DataFrame) -> DataFrame:
        number = F.udf(strict, LongType(), useArrow=False)
        return orders.transform(latest(by="id")).select("id", number("amount").alias("amount"))

    return pipeline


def test_results_on_which_code_after_an_operator_fails_are_set_aside(spark: SparkSession) -> None:
    with Harness(newest("dead_letter"), spark=spark) as harness:
        harness.send("orders", rows("1", "two", "3"))
        harness.step()
        harness.restart()
        harness.send("orders", rows("four", "5"))
        harness.step()
        dead = [(json.loads(row["record"])["amount"], row["error"]) for row in harness.dead("amounts")]
        assert [amount for amount, _ in dead] == ["two", "four"]
        assert all("ValueError: " in error and "invalid literal" in error for _, error in dead)
        assert [row["amount"] for row in harness.view("amounts")] == [
            3
        ]  # "four" is the newest of its key, and greater than "1"
        harness.verify()


def test_a_proof_sets_aside_as_many_results_as_all_micro_batches_did(spark: SparkSession) -> None:
    few = partial(PostOperator, limit=2)
    with (
        mock.patch("headwater.engine.batch.node_compute.PostOperator", few),
        Harness(newest("dead_letter"), spark=spark) as harness,
    ):
        for first in (0, 2):  # each step within the limit, both together beyond it
            harness.send("orders", [{**row, "id": row["id"] + first} for row in rows("two", "five")])
            harness.step()
        assert len(harness.dead("amounts")) == 4
        harness.verify()


def test_a_node_that_stops_names_the_result_of_its_operator(spark: SparkSession) -> None:
    with Harness(newest("stop"), spark=spark) as harness:
        harness.send("orders", rows("1", "two", "3"))
        with pytest.raises(PipelineError, match="failed on 1 of the results of its latest") as raised:
            harness.step()
        assert "amount=two" in str(raised.value.detail)


def test_records_that_fail_are_set_aside_with_their_origin(spark: SparkSession) -> None:
    with Harness(orders("dead_letter"), spark=spark) as harness:
        harness.send("orders", rows("1", "two", "3", "4", "five"))
        harness.step()
        for name in ("plain", "stateful"):
            assert {row["id"]: row["amount"] for row in harness.view(name)} == {0: 1, 2: 3, 3: 4}
            dead = harness.dead(name)
            assert [(row["topic"], row["partition"], row["offset"]) for row in dead] == [
                ("orders", 0, 1),
                ("orders", 0, 4),
            ]
            assert "ValueError" in dead[0]["error"] and "'two'" in dead[0]["error"]
            assert json.loads(dead[0]["record"])["amount"] == "two"
        harness.restart()
        harness.send("orders", [{"id": 9, "amount": "9", "at": 1_700_000_000_100_000}])
        harness.step()
        assert {row["id"] for row in harness.view("plain")} == {0, 2, 3, 9}
        assert len(harness.dead("plain")) == 2
        harness.verify()


def test_a_node_that_stops_names_the_record(spark: SparkSession) -> None:
    with Harness(orders("stop"), spark=spark) as harness:
        harness.send("orders", rows("1", "two", "3"))
        with pytest.raises(PipelineError, match="failed on 1 record") as caught:
            harness.step()
        assert 'topic "orders", partition 0, offset 1: ValueError' in (caught.value.detail or "")
        assert harness.dead("plain") == []


@pytest.mark.parametrize("name", ["plain", "stateful"])
def test_rows_without_a_key_are_set_aside(spark: SparkSession, name: str) -> None:
    with Harness(orders("dead_letter"), spark=spark) as harness:
        good, bad = rows("1", "2")
        harness.send("orders", [good, {**bad, "id": None}])
        harness.step()
        harness.restart()
        harness.step()
        assert [row["amount"] for row in harness.view(name)] == [1]
        (letter,) = harness.dead(name)
        assert letter["error"] == "a null in the key (id)"
        assert json.loads(letter["record"])["amount"] == 2
        harness.verify()


def beside_a_neighbour(on_error: Any) -> Pipeline:
    pipeline = Pipeline("shop")
    pipeline.source("orders", "id BIGINT, amount STRING, at TIMESTAMP", event_time="at", key="id")

    @pipeline.view(key="id", on_error=on_error)
    def strict(orders: DataFrame) -> DataFrame:
        return orders.selectExpr("id", "CAST(amount AS BIGINT) AS amount")

    @pipeline.view(key="id")
    def healthy(orders: DataFrame) -> DataFrame:
        return orders.transform(latest(by="id"))

    return pipeline


def test_a_node_whose_code_fails_leaves_its_neighbours_alone(spark: SparkSession) -> None:
    with Harness(beside_a_neighbour("dead_letter"), spark=spark) as harness:
        harness.send("orders", rows("1"))
        harness.step()
        runner = harness._runner
        (shared,) = runner.queries.values()
        run = shared.spark.runId if shared.spark is not None else None
        harness.send("orders", rows("1", "two", "3"))
        harness.step()
        assert shared.spark is not None and shared.spark.runId == run  # it was not even started again
        assert (list(shared.node_runs), list(runner.nodes["strict"].query.node_runs)) == (
            ["healthy"],
            ["strict"],
        )
        assert [row["amount"] for row in harness.view("strict")] == [1, 3]
        assert "CAST_INVALID_INPUT" in harness.dead("strict")[0]["error"]
        harness.restart()
        harness.send("orders", rows("four", "5"))
        harness.step()
        assert [row["amount"] for row in harness.view("strict")] == [1, 5, 3]
        assert [row["offset"] for row in harness.dead("strict")] == [2, 4]
        harness.verify()


@pytest.mark.parametrize("few", [20_000, 0], ids=["in the driver", "in workers"])
def test_records_of_several_partitions_are_set_aside_by_their_places(
    spark: SparkSession, tmp_path: Path, few: int
) -> None:
    pipeline = beside_a_neighbour("dead_letter")
    pipeline.log, pipeline.home = f"file:{tmp_path / 'log'}", tmp_path / "home"
    schema = "id BIGINT, amount STRING, at TIMESTAMP"
    with headwater.open(pipeline.log) as log, mock.patch("headwater.engine.batch.micro_batch.FEW", few):
        log.create_topic("orders", schema, key="id", event_time="at", partitions=3)
        with log.producer("orders", id="till") as producer:
            producer.send_batch(rows(*("two" if n % 3 == 0 else str(n) for n in range(30))))
        with Runner(pipeline, spark=spark, patient=True) as runner:
            runner.catch_up()
            assert sorted(row["id"] for row in runner.store.view("strict").scan().to_pylist()) == [
                n for n in range(30) if n % 3
            ]
            letters = runner.dead_letters(runner.nodes["strict"].node_run.node).rows()
            assert verify(runner, "strict").ok
        assert {letter["partition"] for letter in letters} == {0, 1, 2}
        assert sorted(json.loads(letter["record"])["id"] for letter in letters) == list(range(0, 30, 3))
        assert sum(len(batch) for batch in log.read("orders")) == 30
