"""Only the columns that a node uses are read, and the node does not notice."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from unittest import mock

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from headwater import Pipeline, latest
from headwater.engine.batch.inputs import Inputs, declare
from headwater.engine.plan import pruning
from headwater.log import Position
from headwater.log.open import open as open_log
from headwater.testing.harness import Harness

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
WIDE = "k BIGINT, x BIGINT, y STRING, z STRING"


def wide(url: str) -> Pipeline:
    pipeline = Pipeline("wide", log=url)
    pipeline.source("timed", WIDE + ", at TIMESTAMP", event_time="at", key="k")
    pipeline.source("plain", WIDE)
    pipeline.table("table", "k BIGINT, name STRING, more STRING", key="k")
    return pipeline


Make = Callable[[DataFrame, DataFrame, DataFrame], DataFrame]
CASES: dict[str, tuple[Make, dict[str, str]]] = {
    "everything": (lambda timed, plain, table: timed, {}),
    "a selection": (lambda timed, plain, table: timed.select("k"), {"timed": "k"}),
    "what a filter looks at": (
        lambda timed, plain, table: plain.filter("x > 1").select("k"),
        {"plain": "k,x"},
    ),
    "no column at all": (lambda timed, plain, table: plain.select(F.lit(1).alias("one")), {"plain": "k"}),
    "a union, by position": (
        lambda timed, plain, table: timed.select("k", "y").union(plain.select("x", "z")),
        {"timed": "k,y", "plain": "x,z"},
    ),
    "a whole union": (lambda timed, plain, table: timed.drop("at").union(plain), {"timed": "k,x,y,z"}),
    "one topic twice": (
        lambda timed, plain, table: plain.select("k", "y").union(plain.select("k", "z")),
        {"plain": "k,y,z"},
    ),
    "rows as Arrow": (lambda timed, plain, table: plain.mapInArrow(lambda rows: rows, WIDE).select("k"), {}),
    "deletions": (lambda timed, plain, table: table.drop("more"), {"table": "k,name,_deleted"}),
    "a function": (
        lambda timed, plain, table: plain.select(F.udf(str.upper, "string")("y").alias("y")),
        {"plain": "y"},
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_no_more_columns_are_read_than_are_used(case: str, spark: SparkSession, url: str) -> None:
    make, expected = CASES[case]
    pipeline = wide(url)
    upstreams = {name: pipeline[name] for name in ("timed", "plain", "table")}
    with open_log(url) as log:
        for each in upstreams.values():
            declare(log, each)
        inputs = Inputs(spark, pipeline, log)
        empty_streams = inputs.empty_streams(upstreams)
        rows = make(**{name: each.frame for name, each in empty_streams.items()})
        used = pruning.used(rows, {each.leaf: name for name, each in empty_streams.items()})
        read = {
            name: pruning.columns(log.topic(name).read_schema.names, used.get(name)) for name in upstreams
        }
        assert {name: option["columns"] for name, option in read.items() if option} == expected
        empty = {name: Position(name, {0: 0}) for name in upstreams}
        parts = {name: inputs.part(each, empty[name], empty[name], used) for name, each in upstreams.items()}
        assert make(**parts).schema == rows.schema


def test_a_node_that_uses_few_columns_has_the_same_results(spark: SparkSession, url: str) -> None:
    pipeline = wide(url)

    @pipeline.view(key="k")
    def newest(timed: DataFrame) -> DataFrame:
        assert timed.columns == ["k", "x", "y", "z", "at"]
        return timed.filter(F.col("x") > 1).select("k", "y", "at").transform(latest(by="k"))

    @pipeline.view(key="k")
    def names(table: DataFrame) -> DataFrame:
        return table.drop("more")

    def row(k: int, x: int, y: str) -> dict[str, Any]:
        return {"k": k, "x": x, "y": y, "z": "unused", "at": NOON}

    with mock.patch("headwater.engine.batch.micro_batch.FEW", 0), Harness(pipeline, spark=spark) as harness:
        harness.send("timed", [row(1, 1, "a"), row(2, 2, "b"), row(2, 3, "c")])
        harness.send("table", [{"k": 1, "name": "ada"}, {"k": 2, "name": "bob"}])
        harness.step()
        harness.delete("table", 1)
        harness.step()
        assert harness.view("newest") == [{"k": 2, "y": "c", "at": NOON}]
        assert harness.view("names") == [{"k": 2, "name": "bob"}]
        harness.verify()
