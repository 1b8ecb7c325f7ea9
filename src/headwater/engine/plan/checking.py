"""Checks a pipeline before anything starts: every node is looked at as a runner would.

Invariant: no log is opened and nothing is written; what passes here is not refused when it runs,
unless for what is stored already.
"""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import SparkSession

from headwater.engine.plan import clocks, derived
from headwater.engine.plan.blank import Blank, blank
from headwater.engine.plan.shape import shape
from headwater.pipeline.declaration import InputTopic
from headwater.pipeline.node import Node
from headwater.pipeline.pipeline import Pipeline
from headwater.pipeline.source_line import errors_at


def check(pipeline: Pipeline, spark: SparkSession) -> dict[str, pa.Schema]:
    """Return the columns of every node's result, or raise the first thing that is wrong."""
    pipeline.check()
    blanks = {topic.name: _blank(topic, spark) for topic in pipeline.input_topics}
    results: dict[str, pa.Schema] = {}
    for node in pipeline.order():
        upstreams = {name: pipeline[name] for name in node.upstreams}
        planned = shape(node, upstreams, blanks)
        results[node.name] = planned.schema
        clocks.check(planned, pipeline)
        topic = derived.check(planned)
        check_stored(pipeline, node, planned.stored)
        if topic is not None:
            blanks[node.name] = blank(spark, topic.read_schema, topic.event_time, topic.key)
    return results


def check_stored(pipeline: Pipeline, node: Node, columns: pa.Schema) -> None:
    """Refuse columns that a node's store cannot hold."""
    with errors_at(node.source_line):
        node.check_stored(columns, pipeline.views)


def _blank(topic: InputTopic, spark: SparkSession) -> Blank:
    return blank(spark, topic.declared.read_schema, topic.event_time, topic.key)
