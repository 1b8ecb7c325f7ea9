"""Spark's own plans and expressions, put together from Python.

Invariant: nothing here is run; a plan that is put together is Spark's to analyse, as any other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from pyspark import cloudpickle
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import DataType
from pyspark.sql.udf import _wrap_function

Plan = Any
Expression = Any


def listed(sequence: Any) -> list[Any]:
    """Return a sequence of Scala's as a list."""
    return [sequence.apply(place) for place in range(sequence.size())]


class Catalyst:
    """Makes plans in a session like another, but for some settings."""

    def __init__(self, spark: SparkSession, settings: dict[str, str]):
        self._spark = spark
        self._jvm = cast(Any, spark.sparkContext._jvm)
        self._expressions = self._jvm.org.apache.spark.sql.catalyst.expressions
        self._plans = self._jvm.org.apache.spark.sql.catalyst.plans.logical
        self._session: Any = spark._jsparkSession.cloneSession()
        for key, value in settings.items():
            self._session.conf().set(key, value)

    def optimised(self, analysed: Plan) -> Plan:
        """Return a plan as Spark means to run it."""
        return self._rows(analysed).queryExecution().optimizedPlan()

    def frame(self, plan: Plan) -> DataFrame:
        """Return a plan as a DataFrame."""
        return DataFrame(self._rows(plan), self._spark)

    def errors(self, plan: Plan, row: Expression, expressions: Sequence[Expression]) -> dict[int, str]:
        """Return what expressions over a plan raise, by the number that a row has in the column ``row``."""
        columns = getattr(self._expressions, "package$AttributeSeq")(plan.output())
        bind, whole = self._expressions.BindReferences.bindReference, self._expressions.CreateStruct.create
        number, computed = (bind(each, columns, False) for each in (row, whole(self.seq(expressions))))
        said: dict[int, str] = {}
        for each in self._rows(plan).queryExecution().executedPlan().executeCollect():
            try:
                computed.eval(each)
            except Exception as error:  # Spark's own expressions raise anything
                said[number.eval(each)] = f"{type(error).__name__}: {error}"
        return said

    def above(self, plan: Plan, child: Plan) -> Plan:
        """Return the topmost step of a plan, over another child."""
        return plan.withNewChildren(self.seq([child]))

    def project(self, columns: Sequence[Expression], child: Plan) -> Plan:
        """Return a step that has some columns."""
        return self._plans.Project(self.seq(columns), child)

    def filter(self, condition: Expression, child: Plan) -> Plan:
        """Return a step that passes on the rows for which a condition holds."""
        return self._plans.Filter(condition, child)

    def evaluated(self, plan: Plan, functions: Sequence[Expression], child: Plan) -> Plan:
        """Return a step that calls user functions, with others and over another child."""
        given = (self.seq(functions), plan.resultAttrs(), child)
        if plan.nodeName() == "BatchEvalPython":
            return self._plans.BatchEvalPython(*given)
        return self._plans.ArrowEvalPython(*given, plan.evalType())

    def mapped(self, plan: Plan, function: Expression, child: Plan) -> Plan:
        """Return a step that gives all rows to a user function, with another one and over another child."""
        kind = getattr(self._plans, plan.nodeName())
        return kind(function, plan.output(), child, plan.isBarrier(), plan.profile())

    def alias(self, expression: Expression, name: str) -> Expression:
        """Return an expression under a name, as a new column."""
        number, none = self._expressions.NamedExpression.newExprId(), self._jvm.scala.Option.empty()
        return self._expressions.Alias(expression, name, number, self.seq([]), none, self.seq([]))

    def number(self, value: int | None) -> Expression:
        """Return a constant."""
        kind = self._jvm.org.apache.spark.sql.types.DataTypes.IntegerType
        return self._expressions.Literal.create(value, kind)

    def tried(self, expression: Expression) -> Expression:
        """Return an expression that is null where it would fail."""
        return self._expressions.TryEval(expression)

    def fails(self, expressions: Sequence[Expression]) -> Expression:
        """Return whether any of some expressions fails."""
        whole = self._expressions.CreateStruct.create(self.seq(expressions))
        return self._expressions.IsNull(self.tried(whole))

    def first(self, one: Expression, condition: Expression, other: Expression) -> Expression:
        """Return an expression; or another, where it is null and a condition holds."""
        conditional = self._expressions.If(condition, other, self.number(None))
        return self._expressions.Coalesce(self.seq([one, conditional]))

    def either(self, column: Expression, condition: Expression) -> Expression:
        """Return whether a column is not null, or a condition holds."""
        return self._expressions.Or(self._expressions.IsNotNull(column), condition)

    def command(self, function: Expression) -> tuple[Any, DataType]:
        """Return what a user function of a plan is, and the type of its results."""
        tag = self._jvm.scala.reflect.ClassTag.Byte()
        loaded: tuple[Any, DataType] = cloudpickle.loads(function.func().command().toArray(tag))
        return loaded

    def function(
        self, like: Expression, code: Any, returns: DataType, arguments: Sequence[Expression]
    ) -> Expression:
        """Return a user function like another, with other code and arguments."""
        wrapped = _wrap_function(self._spark.sparkContext, code, returns)
        kind, certain = like.evalType(), like.udfDeterministic()
        return self._expressions.PythonUDF(
            like.name(), wrapped, like.dataType(), self.seq(arguments), kind, certain, like.resultId()
        )

    def seq(self, items: Sequence[Any]) -> Any:
        """Return a list as a sequence of Scala's."""
        return self._jvm.org.apache.spark.api.python.PythonUtils.toSeq(list(items))

    def _rows(self, plan: Plan) -> Any:
        return self._jvm.org.apache.spark.sql.classic.Dataset.ofRows(self._session, plan)
