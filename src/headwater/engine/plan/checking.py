"""Checks a pipeline before anything starts: every node is looked at as a runner would.

Invariant: no log is opened and nothing is written; what passes here is not refused when it runs,
unless for what is stored already.
"""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import SparkSession

from headwater.engine.plan.derived import check_derived_topic
from headwater.engine.plan.empty_stream import EmptyStream, empty_stream
from headwater.engine.plan.event_time_check import check_hears_time
from headwater.engine.plan.node_plan import plan_node
from headwater.pipeline.declaration import InputTopic
from headwater.pipeline.node import Node
from headwater.pipeline.pipeline import Pipeline
from headwater.pipeline.source_line import errors_at


def check(pipeline: Pipeline, spark: SparkSession) -> dict[str, pa.Schema]:
    """Return the columns of every node's result, or raise the first thing that is wrong."""
    pipeline.check()
    empty_streams = {topic.name: _empty_stream(topic, spark) for topic in pipeline.input_topics}
    results: dict[str, pa.Schema] = {}
    for node in pipeline.order():
        upstreams = {name: pipeline[name] for name in node.upstreams}
        planned = plan_node(node, upstreams, empty_streams)
        results[node.name] = planned.schema
        check_hears_time(planned, pipeline)
        topic = check_derived_topic(planned)
        check_stored(pipeline, node, planned.stored)
        if topic is not None:
            empty_streams[node.name] = empty_stream(spark, topic.read_schema, topic.event_time, topic.key)
    return results


def check_stored(pipeline: Pipeline, node: Node, columns: pa.Schema) -> None:
    """Refuse columns that a node's store cannot hold."""
    with errors_at(node.source_line):
        node.check_stored(columns, pipeline.views)


def _empty_stream(topic: InputTopic, spark: SparkSession) -> EmptyStream:
    return empty_stream(spark, topic.declared.read_schema, topic.event_time, topic.key)
