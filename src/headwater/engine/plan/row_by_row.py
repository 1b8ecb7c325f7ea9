"""Which plans of Spark's look at one row at a time, so that a micro-batch alone gives the right result.

A list of what is allowed: what Spark will learn to do is refused until somebody has thought of it. What
needs other rows than those of a micro-batch has an operator of ours, and a refusal names it.

Invariant: an allowed plan makes of all rows, in any split into micro-batches, what it makes of them at
once; of the same rows it makes the same again, and in their order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from pyspark.sql import DataFrame

from headwater.engine.plan import refusal_messages
from headwater.engine.plan.catalyst import listed
from headwater.engine.plan.empty_stream import leaf_of
from headwater.engine.plan.refusal_messages import NotRowByRow

_ROW_BY_ROW = {
    *("Project", "Filter", "Generate", "Expand", "MapInPandas", "MapInArrow"),
    *("SubqueryAlias", "View", "ResolvedHint", "CTERelationDef"),
}
"""What makes of each row none, one or more, in their order."""
_CONSTANT = {"LocalRelation", "LogicalRDD", "Range", "OneRowRelation"}
"""Leaves that have the same rows whenever they are read."""
_KEEPS_ITS_LEFT = {"INNER", "CROSS", "LEFT OUTER", "LEFT SEMI", "LEFT ANTI"}
_KEEPS_ITS_RIGHT = {"INNER", "CROSS", "RIGHT OUTER"}
"""Joins that give nothing but what they make of the rows of one side."""


def check_row_by_row(rows: DataFrame, leaves: Mapping[int | None, str]) -> frozenset[str]:
    """Return the names of the leaves that rows are made of; raise ``NotRowByRow`` where that needs others."""
    plan = rows._jdf.queryExecution().analyzed()
    _check_repeatable(plan, rows.sparkSession._jvm)
    found = _PlanWalk(leaves).sources(plan)
    if not found:
        raise NotRowByRow(refusal_messages.CONSTANTS)
    return found


def drops_rows(rows: DataFrame) -> bool:
    """Tell whether an allowed plan may leave rows out."""
    plan = rows._jdf.queryExecution().analyzed()
    return any(
        kind(each) in ("Filter", "Generate", "Join", "MapInPandas", "MapInArrow") for each in walk(plan)
    )


def kind(plan: Any) -> str:
    """Return what a node of a plan is."""
    return str(plan.getClass().getSimpleName())


def walk(plan: Any) -> Iterator[Any]:
    """Yield the nodes of a plan, and those of its subqueries."""
    yield plan
    for each in (*listed(plan.children()), *listed(plan.subqueries())):
        yield from walk(each)


class _PlanWalk:
    """One way through a plan."""

    def __init__(self, leaves: Mapping[int | None, str]):
        self._leaves = leaves
        self._defined: dict[int, frozenset[str]] = {}
        """What the queries that SQL has given names are made of."""

    def sources(self, plan: Any) -> frozenset[str]:
        for each in listed(plan.subqueries()):
            self._check_constant(each)
        if not plan.isStreaming():
            self._check_constant(plan)
            return frozenset()
        special = {
            "LogicalRDD": self._leaf,
            "WithCTE": self._with,
            "CTERelationRef": lambda plan: self._defined[plan.cteId()],
            "Union": self._union,
            "Join": self._join,
        }.get(kind(plan))
        if special is not None:
            return special(plan)
        if kind(plan) not in _ROW_BY_ROW or _is_udtf(plan):
            raise NotRowByRow(refusal_messages.of(kind(plan), plan), self._below(plan))
        return self._children(plan)

    def _children(self, plan: Any) -> frozenset[str]:
        return frozenset[str]().union(*(self.sources(each) for each in listed(plan.children())))

    def _below(self, plan: Any) -> frozenset[str]:
        known = {name for each in walk(plan) if (name := self._leaves.get(leaf_of(each)))}
        named = [self._defined[each.cteId()] for each in walk(plan) if kind(each) == "CTERelationRef"]
        return frozenset(known).union(*named)

    def _leaf(self, plan: Any) -> frozenset[str]:
        leaf = leaf_of(plan)
        if leaf not in self._leaves:
            raise NotRowByRow(refusal_messages.FOREIGN)
        return frozenset({self._leaves[leaf]})

    def _with(self, plan: Any) -> frozenset[str]:
        *definitions, query = listed(plan.children())
        for each in definitions:
            self._defined[each.id()] = self.sources(each)
        return self.sources(query)

    def _union(self, plan: Any) -> frozenset[str]:
        if not all(each.isStreaming() for each in listed(plan.children())):
            raise NotRowByRow(refusal_messages.CONSTANTS)
        return self._children(plan)

    def _join(self, plan: Any) -> frozenset[str]:
        left, right = listed(plan.children())
        if left.isStreaming() and right.isStreaming():
            raise NotRowByRow(refusal_messages.joined(self.sources(left), self.sources(right)))
        stream, constant = (left, right) if left.isStreaming() else (right, left)
        kept = _KEEPS_ITS_LEFT if stream is left else _KEEPS_ITS_RIGHT
        if plan.joinType().sql() not in kept:
            raise NotRowByRow(refusal_messages.OUTER)
        if not _is_broadcast(constant):
            raise NotRowByRow(refusal_messages.NOT_BROADCAST)
        self._check_constant(constant)
        return self.sources(stream)

    def _check_constant(self, plan: Any) -> None:
        for each in walk(plan):
            if each.isStreaming():
                raise NotRowByRow(refusal_messages.SUBQUERY)
            if not each.children().size() and kind(each) not in _CONSTANT | {"CTERelationRef"}:
                raise NotRowByRow(refusal_messages.OUTSIDE)


def _is_udtf(plan: Any) -> bool:
    """Tell whether rows are generated by code that sees those of a partition, one after the other."""
    return kind(plan) == "Generate" and "Python" in kind(plan.generator())


def _is_broadcast(plan: Any) -> bool:
    """Tell whether one side of a join goes to the other, which then keeps the order of its rows."""
    while kind(plan) != "ResolvedHint":
        if plan.children().size() != 1:
            return False
        (plan,) = listed(plan.children())
    return "broadcast" in str(plan.hints())


def _check_repeatable(plan: Any, jvm: Any) -> None:
    """Refuse expressions that have another value when the same micro-batch is repeated."""
    now = jvm.org.apache.spark.sql.catalyst.trees.TreePattern.CURRENT_LIKE()
    if plan.deterministic() and not plan.containsPattern(now):
        return
    for expression in (found for each in walk(plan) for found in listed(each.expressions())):
        if expression.containsPattern(now):
            raise NotRowByRow(
                refusal_messages.now(_innermost(expression, lambda each: each.containsPattern(now)))
            )
        if not expression.deterministic():
            raise NotRowByRow(
                refusal_messages.random(_innermost(expression, lambda each: not each.deterministic()))
            )


def _innermost(expression: Any, wrong: Callable[[Any], bool]) -> str:
    """Return the part of an expression that is wrong, as SQL."""
    inner = next((each for each in listed(expression.children()) if wrong(each)), None)
    return str(expression.sql()) if inner is None else _innermost(inner, wrong)
