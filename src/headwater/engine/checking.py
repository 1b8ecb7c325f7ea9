"""Checks a pipeline before anything starts: every function is called once, over no rows.

Invariant: no log is opened and nothing is written.
"""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from headwater.declaring import told_at
from headwater.engine import applying, clocked, tables
from headwater.engine.applying import Capturing, arrow_schema
from headwater.engine.calling import call, carry
from headwater.errors import PipelineError, nearest
from headwater.log import record
from headwater.node import Declaration, Node, Place, Source, Table
from headwater.pipeline import Pipeline
from headwater.schema import type_name
from headwater.sinks import limits
from headwater.sinks.fitting import DELETED
from headwater.sinks.keyed import declare
from headwater.sinks.targets import Target


def check(pipeline: Pipeline, spark: SparkSession) -> dict[str, pa.Schema]:
    """Return the columns of every node's result, or raise the first thing that is wrong."""
    pipeline.check()
    known = {each.name: _empty(each, spark) for each in (*pipeline.sources, *pipeline.tables)}
    results: dict[str, pa.Schema] = {}
    for node in pipeline.order():
        carry(node)
        capturing = Capturing()
        with applying.during(capturing):
            made = call(node, {name: known[name] for name in node.upstreams})
        results[node.name] = arrow_schema(made)
        check_key(node, results[node.name])
        check_stored(pipeline, node, results[node.name])
        tables.read_by(node, {name: pipeline[name] for name in node.upstreams}, capturing.stage)
        tables.check_deletions(node, capturing.stage, results[node.name])
        known[node.name] = clocked.marked(made, node.event_time, node.key)
    return results


def check_key(node: Node, schema: pa.Schema) -> None:
    """Refuse a key, or an order, that names a column which the result has not."""
    asked = [*((column, "key") for column in node.key), *([(node.order, "order")] if node.order else [])]
    for column, what in asked:
        if column not in schema.names:
            raise PipelineError(
                f'{node.title} has no column "{column}", which its {what} names',
                detail="its result has " + ", ".join(schema.names),
                hint=nearest(column, schema.names) or f"add the column to the result, or change the {what}",
                place=node.place,
            )
    if node.order and pa.types.is_nested(schema.field(node.order).type):
        raise PipelineError(
            f'{node.title} cannot be in the order of "{node.order}"',
            detail=f"it is {type_name(schema.field(node.order))}",
            place=node.place,
        )


def check_stored(pipeline: Pipeline, node: Node, schema: pa.Schema) -> None:
    """Refuse columns that a node's store cannot hold."""
    columns = pa.schema([field for field in schema if field.name != DELETED])
    with told_at(Place(node.file, node.line)):
        if isinstance(node.target, Target):
            node.target.check(columns)
        elif node.kind == "view" and (node.store or pipeline.views):
            limits.check_postgres(declare(node.title, columns, node.key), changes=True)
        elif node.kind == "view":
            limits.check_sqlite(declare(node.title, columns, node.key))


def _empty(each: Declaration, spark: SparkSession) -> DataFrame:
    assert isinstance(each, Source | Table)
    schema = from_arrow_schema(record.read_schema(each.schema, isinstance(each, Table)))
    return clocked.marked(spark.createDataFrame([], schema), each.event_time, each.key)
