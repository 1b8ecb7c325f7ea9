"""A plan that names the rows on which it would fail, and goes on with the others.

Rows are numbered, and every step passes the number on, beside how deep in the plan a row has failed.
Spark's own expressions are wrapped in its ``TryEval``, user functions in
``headwater.engine.failure.guarded_code``. The steps are those of the optimised plan, so that nothing is
computed which the plan itself leaves out. Invariant: what is not understood here stays as it is, and fails
the whole as it always did.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark import accumulators
from pyspark.accumulators import Accumulator
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from headwater.engine.failure import guarded_code
from headwater.engine.failure.guarded_code import FirstReport, Reporter, Reports
from headwater.engine.plan.catalyst import Catalyst, Expression, Plan, listed

ROW = "__headwater_row"
"""The column that numbers the rows of a DataFrame."""
_FAILED = "__headwater_failed"
_SETTINGS = {
    # Either would compute an expression outside of what catches its error.
    "spark.sql.optimizer.excludedRules": "org.apache.spark.sql.catalyst.optimizer.ConvertToLocalRelation",
    "spark.sql.subexpressionElimination.enabled": "false",
}


def failing(rows: DataFrame, limit: int, *, with_messages: bool = False) -> dict[int, str]:
    """Return the rows on which the plan of a DataFrame fails that is made of one with the column ``ROW``.

    There are ``limit`` of them at the most, the first ones; each comes with what was raised, if
    ``with_messages`` or if a user's function has raised it. Raises what the plan raises, where no row alone
    is to blame.
    """
    reports = rows.sparkSession.sparkContext.accumulator({}, FirstReport())
    guard = _Guard(Catalyst(rows.sparkSession, _SETTINGS), reports, limit)
    try:
        failed = guard.run(rows._jdf.queryExecution().analyzed())
        found = FirstReport().addInPlace(dict(reports.value), failed)
    finally:
        accumulators._accumulatorRegistry.pop(reports.aid, None)
    messages = (
        guard.messages({row: depth for row, (depth, text) in found.items() if not text})
        if with_messages
        else {}
    )
    return {row: messages.get(row, found[row][1]) for row in sorted(found)[:limit]}


@dataclass(frozen=True)
class _Step:
    """A part of a plan, and the two columns that it passes on; none behind what makes other rows."""

    plan: Plan
    row: Expression = None
    failed: Expression = None


class _Guard:
    def __init__(self, catalyst: Catalyst, reports: Accumulator[Reports], limit: int):
        self._catalyst, self._reports, self._limit = catalyst, reports, limit
        self._depth = 0
        self._checks: dict[int, tuple[_Step, list[Expression]]] = {}
        """What is checked in each depth, and the rows below it."""

    def run(self, analysed: Plan) -> Reports:
        """Run a plan, and return the rows on which Spark's own expressions fail; others are reported."""
        optimised = self._catalyst.optimised(analysed)
        step = self._guarded(optimised)
        if step.row is None:
            self._catalyst.frame(step.plan).write.format("noop").mode("overwrite").save()
            return {}
        step = self._checked(step, listed(optimised.output()))
        found = self._catalyst.frame(self._catalyst.project([step.row, step.failed], step.plan))
        numbers, depths = found.filter(F.col(_FAILED).isNotNull()).toArrow().columns
        return {row: (depth, "") for row, depth in zip(numbers.to_pylist(), depths.to_pylist(), strict=True)}

    def messages(self, failed: Mapping[int, int]) -> dict[int, str]:
        """Return what Spark's own expressions raise on rows, by the depth in which they fail."""
        messages: dict[int, str] = {}
        for depth in set(failed.values()) & set(self._checks):
            below, expressions = self._checks[depth]
            raised = self._catalyst.errors(below.plan, below.row, expressions)
            messages |= {row: text for row, text in raised.items() if failed.get(row) == depth}
        return messages

    def _guarded(self, plan: Plan) -> _Step:
        children = listed(plan.children())
        if not children:
            return self._leaf(plan)
        if len(children) > 1:
            return _Step(plan)
        below = self._guarded(children[0])
        kind = plan.nodeName()
        if below.row is None:
            return _Step(self._catalyst.above(plan, below.plan))
        if kind == "Project":
            return self._projected(plan, below)
        if kind == "Filter":
            return self._filtered(plan, below)
        if kind in ("BatchEvalPython", "ArrowEvalPython"):
            return self._evaluated(plan, below)
        ordered = self._ordered(children[0], below)
        if kind in ("MapInArrow", "MapInPandas"):
            return self._mapped(plan, ordered)
        if kind == "Generate":
            return _Step(self._catalyst.above(plan, ordered.plan), below.row, below.failed)
        return _Step(plan)

    def _leaf(self, plan: Plan) -> _Step:
        row = next((each for each in listed(plan.output()) if each.name() == ROW), None)
        if row is None:
            return _Step(plan)
        failed = self._catalyst.alias(self._catalyst.number(None), _FAILED)
        with_mark = self._catalyst.project([*listed(plan.output()), failed], plan)
        return _Step(with_mark, row, failed.toAttribute())

    def _projected(self, plan: Plan, below: _Step) -> _Step:
        chosen = listed(plan.projectList())
        step = self._checked(below, chosen)
        tried = [self._tried(each) for each in chosen]
        return _Step(
            self._catalyst.project([*tried, step.row, step.failed], step.plan), step.row, step.failed
        )

    def _filtered(self, plan: Plan, below: _Step) -> _Step:
        step = self._checked(below, [plan.condition()])
        passed = self._catalyst.either(step.failed, self._catalyst.tried(plan.condition()))
        return _Step(self._catalyst.filter(passed, step.plan), step.row, step.failed)

    def _evaluated(self, plan: Plan, below: _Step) -> _Step:
        functions = [self._function(each, [below.row]) for each in listed(plan.udfs())]
        return _Step(self._catalyst.evaluated(plan, functions, below.plan), below.row, below.failed)

    def _mapped(self, plan: Plan, below: _Step) -> _Step:
        function = self._function(plan.functionExpr(), [below.row, below.failed])
        return _Step(self._catalyst.mapped(plan, function, below.plan))

    def _checked(self, below: _Step, expressions: list[Expression]) -> _Step:
        """Return a step that marks the rows on which expressions fail."""
        self._depth += 1
        self._checks[self._depth] = below, expressions
        fails, depth = self._catalyst.fails(expressions), self._catalyst.number(self._depth)
        failed = self._catalyst.alias(self._catalyst.first(below.failed, fails, depth), _FAILED)
        others = [each for each in listed(below.plan.output()) if each.name() != _FAILED]
        return _Step(self._catalyst.project([*others, failed], below.plan), below.row, failed.toAttribute())

    def _tried(self, chosen: Expression) -> Expression:
        """Return a column of a projection, null where it fails."""
        if chosen.nodeName() != "Alias":
            return chosen
        return self._catalyst.above(chosen, self._catalyst.tried(chosen.child()))

    def _ordered(self, plan: Plan, below: _Step) -> _Step:
        """Return a step whose own two columns are the last."""
        columns = [*listed(plan.output()), below.row, below.failed]
        return _Step(self._catalyst.project(columns, below.plan), below.row, below.failed)

    def _function(self, function: Expression, more: list[Expression]) -> Expression:
        """Return a user function, with those whose results it is given, as one that reports."""
        self._depth += 1
        chain = [function]
        while [each.nodeName() for each in listed(chain[-1].children())] == ["PythonUDF"]:
            chain.append(chain[-1].children().apply(0))
        commands = [self._catalyst.command(each) for each in reversed(chain)]
        reporter = Reporter(self._reports, self._depth, self._limit)
        codes, returns = [code for code, _ in commands], commands[-1][1]
        guarded = guarded_code.guarded(function.evalType(), codes, returns, reporter)
        arguments = [*listed(chain[-1].children()), *more]
        return self._catalyst.function(function, guarded, returns, arguments) if guarded else function
