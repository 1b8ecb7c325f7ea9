"""A node's code over few rows, evaluated by Spark's optimiser in the driver: a job costs 40 ms or more,
however few its rows are, and each node with a filter would have one in every micro-batch.

The plan is the one that the node's function made of empty streams, optimised once; rows take the place of the
empty streams, and Spark's own rule for projections and filters over rows that are at hand does the rest.

Invariant: the rows and their order are those of a job over the same plan; what needs more than projections,
filters and unions is left to one.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from functools import cached_property
from typing import Any, cast

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from headwater.engine.plan.catalyst import listed
from headwater.engine.plan.empty_stream import leaf_of
from headwater.engine.plan.phases import arrow_schema

_ONE_BATCH = 1 << 40
"""More rows, and more bytes, than there are."""


class LocalPlan:
    """What code makes of its leaves, ready to be evaluated again and again."""

    def __init__(self, rows: DataFrame, leaves: Mapping[int | None, str]):
        self._rows, self._leaves = rows, leaves
        self._jvm = cast(Any, rows.sparkSession.sparkContext._jvm)

    def evaluated(self, frames: Mapping[str, DataFrame]) -> pa.Table | None:
        """Return what the code makes of DataFrames that hold their rows; nothing where it takes a job."""
        relations = None if self._plan is None else self._relations(self._filled(self._plan, frames))
        if relations is None:
            return None
        schema = self._schema
        try:
            tables = [self._table(each) for each in relations]
        except (OSError, Py4JError):  # no room for the file, say
            return None
        return pa.concat_tables([each.rename_columns(schema.names).cast(schema) for each in tables])

    @cached_property
    def _schema(self) -> pa.Schema:
        return arrow_schema(self._rows)

    @cached_property
    def _plan(self) -> Any:
        """The code's plan, optimised; none if that fails, which a job will tell in the user's terms."""
        optimizer = self._rows.sparkSession._jsparkSession.sessionState().optimizer()
        try:
            return optimizer.execute(self._rows._jdf.queryExecution().analyzed())
        except PySparkException:
            return None

    def _filled(self, plan: Any, frames: Mapping[str, DataFrame]) -> Any:
        """Return a plan with rows in place of its empty streams."""
        name = self._leaves.get(leaf_of(plan))
        if name is not None:
            return self._relation(plan, frames[name])
        children = [self._filled(each, frames) for each in listed(plan.children())]
        return plan.withNewChildren(self._jvm.org.apache.spark.api.python.PythonUtils.toSeq(children))

    def _relation(self, leaf: Any, frame: DataFrame) -> Any:
        rows = frame._jdf.queryExecution().analyzed()
        while rows.children().size():  # nothing but marks of columns is above them
            rows = rows.children().apply(0)
        if rows.nodeName() != "LocalRelation":  # they are too large for one
            return leaf
        kind = self._jvm.org.apache.spark.sql.catalyst.plans.logical.LocalRelation
        return kind(leaf.output(), rows.data(), False, self._jvm.scala.Option.empty())

    def _relations(self, plan: Any) -> list[Any] | None:
        """Return the relations that a plan comes down to, in the order of their rows."""
        if plan.nodeName() == "Union":
            parts = [self._relations(each) for each in listed(plan.children())]
            return None if None in parts else [each for part in parts for each in part or ()]
        while plan.nodeName() != "LocalRelation":
            smaller = self._rule.apply(plan)
            if smaller.fastEquals(plan):
                return None
            plan = smaller
        return [plan]

    @property
    def _rule(self) -> Any:
        return _module(self._jvm.org.apache.spark.sql.catalyst.optimizer, "ConvertToLocalRelation")

    def _table(self, relation: Any) -> pa.Table:
        """Return the rows of a relation; by way of a file, as a socket may wait 40 ms to send the rest."""
        converters = _module(self._jvm.org.apache.spark.sql.execution.arrow, "ArrowConverters")
        rows, schema = relation.data().iterator(), relation.schema()
        batches = converters.toBatchWithSchemaIterator(
            rows, schema, _ONE_BATCH, _ONE_BATCH, "UTC", True, False
        )
        with tempfile.NamedTemporaryFile(prefix="headwater-") as file:
            stream = self._jvm.java.io.DataOutputStream(self._jvm.java.io.FileOutputStream(file.name))
            try:
                python = _module(self._jvm.org.apache.spark.api.python, "PythonRDD")
                python.writeIteratorToStream(batches, stream)
            finally:
                stream.close()
            batch = file.read()[4:]  # behind its length
        return pa.ipc.open_stream(batch).read_all() if batch else self._schema.empty_table()


def _module(package: Any, name: str) -> Any:
    """Return an object of Scala's."""
    return getattr(getattr(package, f"{name}$"), "MODULE$")
