"""Which columns of each topic a node uses, as Spark's optimiser sees it, so that only those are read.

Spark does not tell a Python data source which columns it wants, but it puts a projection right above
the source where some are not wanted. Invariant: a column is left out only where the plan proves that
nothing looks at it; what is not understood here uses all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

Used = Mapping[str, frozenset[str]]
"""Names of columns by topic; a topic that is not there is used whole."""
NOTHING: Used = MappingProxyType({})
_CHOOSES = ("Project", "Aggregate")
"""What lets through no column of its input that it does not name."""
_PASSES = ("Filter", "EventTimeWatermark")
"""What passes the columns of its input on, and looks at those it names."""


def used(rows: DataFrame) -> Used:
    """Return what a stream's rows are made of, of each topic that is not used whole."""
    plan = rows._jdf.queryExecution().analyzed()
    try:
        optimised = rows.sparkSession._jsparkSession.sessionState().optimizer().execute(plan)
    except PySparkException:  # an expression that fails: it is told when the query runs
        return NOTHING
    found: dict[str, set[str]] = {}
    there: dict[str, int] = {}
    for leaf, wanted in _leaves(optimised, None):
        topic, columns = leaf.extraOptions().get("topic"), _named(leaf.output())
        there[topic] = len(columns)
        names = {name for name, number in columns if wanted is None or number in wanted}
        found[topic] = found.get(topic, set()) | names
    return {topic: frozenset(names) for topic, names in found.items() if len(names) < there[topic]}


def columns(names: Sequence[str], used: frozenset[str] | None) -> dict[str, str]:
    """Return the options that let the source read no more columns than are used."""
    if used is None or used.issuperset(names) or any("," in name for name in names):
        return {}
    return {"columns": ",".join([name for name in names if name in used] or names[:1])}


def widened(rows: DataFrame, schema: StructType) -> DataFrame:
    """Return rows with all columns of a schema, in its order; those that were not read are null."""
    if len(rows.columns) == len(schema):
        return rows
    return rows.select(*[_column(field, field.name in rows.columns) for field in schema])


def _column(field: StructField, there: bool) -> Column:
    if there:
        return F.col("`" + field.name.replace("`", "``") + "`")
    return F.lit(None).cast(field.dataType).alias(field.name)


def _leaves(plan: Any, wanted: set[int] | None) -> Iterator[tuple[Any, set[int] | None]]:
    """Yield each source of a plan with the numbers of the columns that are wanted of it; None are all."""
    kind = plan.nodeName()
    if kind == "StreamingRelationV2":
        yield plan, wanted
        return
    own = {number for _, number in _named(plan.references().toSeq())}
    if kind in _CHOOSES:
        wanted = own
    elif kind not in _PASSES:
        wanted = None
    elif wanted is not None:
        wanted = wanted | own
    for child in _listed(plan.children()):
        yield from _leaves(child, wanted)


def _named(attributes: Any) -> list[tuple[str, int]]:
    return [(each.name(), each.exprId().id()) for each in _listed(attributes)]


def _listed(sequence: Any) -> list[Any]:
    return [sequence.apply(place) for place in range(sequence.size())]
