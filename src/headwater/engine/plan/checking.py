"""Checks a pipeline before anything starts: every node is looked at as a runner would.

Invariant: no log is opened and nothing is written; what passes here is not refused when it runs,
unless for what is stored already.
"""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import SparkSession

from headwater import record
from headwater.engine.plan import derived
from headwater.engine.plan.blank import Blank, blank
from headwater.engine.plan.shape import shape
from headwater.pipeline.declaring import told_at
from headwater.pipeline.node import Declaration, Node, Source, SourceLine, Table
from headwater.pipeline.pipeline import Pipeline
from headwater.pipeline.targets import SinkTarget
from headwater.stores import limits
from headwater.values.keyed import declare


def check(pipeline: Pipeline, spark: SparkSession) -> dict[str, pa.Schema]:
    """Return the columns of every node's result, or raise the first thing that is wrong."""
    pipeline.check()
    known = {each.name: _declared(each, spark) for each in (*pipeline.sources, *pipeline.tables)}
    results: dict[str, pa.Schema] = {}
    for node in pipeline.order():
        upstreams = {name: pipeline[name] for name in node.upstreams}
        made = shape(node, upstreams, known)
        results[node.name] = made.schema
        topic = derived.check(made)
        check_stored(pipeline, node, made.stored)
        if topic is not None:
            known[node.name] = blank(spark, topic.read_schema, topic.event_time, topic.key)
    return results


def check_stored(pipeline: Pipeline, node: Node, columns: pa.Schema) -> None:
    """Refuse columns that a node's store cannot hold."""
    with told_at(SourceLine(node.file, node.line)):
        if isinstance(node.target, SinkTarget):
            node.target.check(columns)
        elif node.kind == "view" and (node.store or pipeline.views):
            limits.check_postgres(declare(node.title, columns, node.key), changes=True)
        elif node.kind == "view":
            limits.check_sqlite(declare(node.title, columns, node.key))


def _declared(each: Declaration, spark: SparkSession) -> Blank:
    assert isinstance(each, Source | Table)
    schema = record.read_schema(each.schema, isinstance(each, Table))
    return blank(spark, schema, each.event_time, each.key)
