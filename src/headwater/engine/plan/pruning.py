"""Which columns of each topic a node uses, as Spark's optimiser sees it, so that only those are read.

Spark does not tell a Python data source which columns it wants, but it puts a projection right above
what is read where some are not wanted. Invariant: a column is left out only where the plan proves that
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

from headwater.engine.plan.catalyst import listed
from headwater.engine.plan.empty_stream import leaf_of
from headwater.names import backquoted

Used = Mapping[str, frozenset[str]]
"""Names of columns by upstream; one that is not there is used whole."""
NOTHING: Used = MappingProxyType({})
_CHOOSES = ("Project",)
"""What lets through no column of its input that it does not name."""
_PASSES = ("Filter",)
"""What passes the columns of its input on, and looks at those it names."""


def used(rows: DataFrame, leaves: Mapping[int | None, str]) -> Used:
    """Return what rows are made of, of each upstream that is not used whole."""
    plan = rows._jdf.queryExecution().analyzed()
    try:
        optimised = rows.sparkSession._jsparkSession.sessionState().optimizer().execute(plan)
    except PySparkException:  # an expression that fails: it is told when the query runs
        return NOTHING
    found: dict[str, set[str]] = {}
    there: dict[str, int] = {}
    for leaf, wanted in _leaves(optimised, None):
        name, columns = leaves[leaf_of(leaf)], _named(leaf.output())
        there[name] = len(columns)
        names = {name for name, number in columns if wanted is None or number in wanted}
        found[name] = found.get(name, set()) | names
    return {name: frozenset(names) for name, names in found.items() if len(names) < there[name]}


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
        return F.col(backquoted(field.name))
    return F.lit(None).cast(field.dataType).alias(field.name)


def _leaves(plan: Any, wanted: set[int] | None) -> Iterator[tuple[Any, set[int] | None]]:
    """Yield each source of a plan with the numbers of the columns that are wanted of it; None are all."""
    kind = plan.nodeName()
    if leaf_of(plan) is not None:
        yield plan, wanted
        return
    own = {number for _, number in _named(plan.references().toSeq())}
    if kind in _CHOOSES:
        wanted = own
    elif kind not in _PASSES:
        wanted = None
    elif wanted is not None:
        wanted = wanted | own
    for child in listed(plan.children()):
        yield from _leaves(child, wanted)


def _named(attributes: Any) -> list[tuple[str, int]]:
    return [(each.name(), each.exprId().id()) for each in listed(attributes)]
