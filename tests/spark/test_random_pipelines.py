"""Random pipelines, arrivals, micro-batches and restarts: stream == batch == a naive oracle."""

from __future__ import annotations

import os
from datetime import timedelta
from typing import Any
from unittest import mock

import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

import naive_oracle as oracle
from headwater.testing.harness import Harness
from naive_oracle import START, History, Mark, Record
from random_pipelines import COLUMNS, Action, Plan, Row, built, plan

EXAMPLES = int(os.environ.get("PROPERTY_EXAMPLES", "2"))
"""Each takes some 10 to 20 seconds; a failure names its number, which can be tried again as an example."""


@pytest.mark.timeout(300 + 60 * EXAMPLES)
@settings(
    max_examples=EXAMPLES,
    phases=[Phase.explicit, Phase.generate],  # a smaller number is no simpler pipeline
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
    database=None,
)
@example(seed=312)  # a limit cuts an append in two
@given(seed=st.integers(0, 2**40))
def test_a_stream_is_its_batch_and_the_oracle(seed: int, spark: SparkSession) -> None:
    wanted = plan(seed)
    few = 20_000 if seed % 2 else 3  # in the driver, or now there and now in workers
    with (
        mock.patch("headwater.engine.batch.micro_batch.FEW", few),
        Harness(built(wanted), spark=spark, limit=wanted.limit) as harness,
    ):
        history = play(wanted, harness)
        for node in wanted.nodes:
            late = oracle.judged(harness.late(node.name))
            oracle.check_late(history, node, late)
            if node.kind == "view":
                oracle.check_view(history, node, late, harness.view(node.name))
            else:
                rows = [record.row for record in history.records[node.name]]
                oracle.check_stream(history, node, late, rows)
        harness.verify()


def play(wanted: Plan, harness: Harness) -> History:
    """Do what a plan says, and return what has happened."""
    ends: list[dict[str, Any]] = []
    marks: list[Mark] = []
    for source in wanted.sources:
        if source.partitions > 1:
            harness.log.alter_topic(source.name, partitions=source.partitions)
    topics = {name: harness._topic(name) for name in names(wanted)}
    for action in wanted.actions:
        act(action, harness)
        if action.name == "advance":
            time = START + timedelta(seconds=action.to)
            marks += [Mark(each.name, action.producer, time, len(ends)) for each in wanted.sources]
        elif action.name == "step":
            ends.append(
                {name: harness.log.resolve(topic, "latest").offsets for name, topic in topics.items()}
            )
    partitions = {name: harness.log.topic(topic).partitions for name, topic in topics.items()}
    records = {name: found(harness, name, topic, ends) for name, topic in topics.items()}
    return History(wanted, records, marks, partitions, len(ends) - 1)


def names(wanted: Plan) -> list[str]:
    streams = [node.name for node in wanted.nodes if node.kind == "stream"]
    return [source.name for source in wanted.sources] + streams


def act(action: Action, harness: Harness) -> None:
    match action.name:
        case "send":
            rows = [dict(zip(COLUMNS, values, strict=True)) for values in action.rows]
            harness.send(action.source, [timed(row) for row in rows], producer=action.producer)
        case "advance":
            harness.advance(START + timedelta(seconds=action.to), producer=action.producer)
        case "step":
            harness.step()
        case "restart":
            harness.restart()


def timed(row: Row) -> Row:
    return {**row, "at": None if row["at"] is None else START + timedelta(seconds=row["at"])}


def found(harness: Harness, name: str, topic: str, ends: list[dict[str, Any]]) -> list[Record]:
    """Return the rows of a topic, each with the step in which it was processed."""
    records = []
    for batch in harness.log.read(topic, meta=True):
        for row in batch.to_pylist():
            place = row["_partition"], row["_offset"]
            step = next(number for number, end in enumerate(ends) if place[1] < end[name][place[0]])
            own = {column: value for column, value in row.items() if not column.startswith("_")}
            records.append(Record(own, *place, row["_producer"], step))
    return records
