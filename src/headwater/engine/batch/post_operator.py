"""A node's code after its operator, over the operator's results, and the results on which it fails.

Those are found as records are before the operator; nothing is committed here. Invariant: what is rejected
fails alone, and the other results are computed as if it had not come.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

from headwater.engine.batch.failing_records import MOST
from headwater.engine.batch.inputs import Inputs
from headwater.engine.batch.micro_batch import is_few
from headwater.engine.exchange.frames import frame
from headwater.engine.failure import failures
from headwater.engine.failure.failing_rows import FailingRowSearch
from headwater.engine.failure.guarded_plan import ROW
from headwater.engine.plan import keyed_results, phases
from headwater.engine.plan.node_plan import RESULTS, NodePlan
from headwater.engine.plan.user_code import call
from headwater.errors import HeadwaterError, PipelineError
from headwater.operators.operator import rejected


@dataclass(frozen=True)
class PostOperatorResult:
    """What has become of an operator's results."""

    rows: pa.Table
    rejected: pa.Table | None = None
    """Results on which the code fails, each with its error."""


@dataclass(frozen=True)
class PostOperator:
    """Calls the code behind the operator of a node."""

    plan: NodePlan
    inputs: Inputs
    limit: int | None = MOST
    """Results that are rejected at once; a proof, which sees those of all micro-batches, has no limit."""

    def run(self, results: pa.Table) -> PostOperatorResult:
        """Return what the node makes of results; those on which its code fails are named, or rejected."""
        plan = self.plan
        if plan.direct_output or not results.num_rows:
            rows = results.cast(plan.schema) if plan.direct_output else plan.schema.empty_table()
            return PostOperatorResult(rows)
        assert plan.stage is not None
        if not keyed_results.has_operator_key(plan.node, plan.stage):
            return self._run(results)
        last = keyed_results.last_per_identity(results, plan.stage.operator.identity)
        done = self._run(keyed_results.without_deletions(last))
        return replace(done, rows=keyed_results.with_deletions(plan.node, done.rows, last))

    def _run(self, results: pa.Table) -> PostOperatorResult:
        if not results.num_rows:
            return PostOperatorResult(self.plan.schema.empty_table())
        try:
            return PostOperatorResult(self._rows(results))
        except HeadwaterError:
            raise
        except Exception as error:
            return self._without(results, self._failing(results, error))

    def _rows(self, results: pa.Table) -> pa.Table:
        few = is_few(results.num_rows)
        rows = self.plan.local_plan.evaluated({RESULTS: self._frame(results)}) if few else None
        return self._code(results).toArrow().cast(self.plan.schema) if rows is None else rows

    def _code(self, results: pa.Table) -> DataFrame:
        upstreams = self.plan.upstreams
        with phases.during(phases.after_operator(self._frame(results).drop(ROW))):
            return call(self.plan.node, {name: self.inputs.empty(each) for name, each in upstreams.items()})

    def _frame(self, results: pa.Table) -> DataFrame:
        return frame(self.plan.rows.sparkSession, results)

    def _failing(self, results: pa.Table, error: Exception) -> dict[int, str]:
        """Return the indexes of the results that are to blame, and the error of each."""
        node = self.plan.node
        limit = results.num_rows if self.limit is None else self.limit
        failing = FailingRowSearch(node, self._code).failing(results, limit + 1)
        if not failing or len(failing) > limit:  # it fails on none alone, or on all: the code is wrong
            raise failures.error_from_exception(node, error) from error
        if node.on_error != "dead_letter":
            raise _stopped(self.plan, results, failing) from error
        return failing

    def _without(self, results: pa.Table, failing: dict[int, str]) -> PostOperatorResult:
        good = np.ones(results.num_rows, bool)
        good[list(failing)] = False
        bad = rejected(results.take(list(failing)), list(failing.values()))
        others = results.filter(pa.array(good))
        return PostOperatorResult(
            self._rows(others) if others.num_rows else self.plan.schema.empty_table(), bad
        )


def _stopped(plan: NodePlan, results: pa.Table, failing: dict[int, str]) -> PipelineError:
    assert plan.stage is not None
    index, error = next(iter(failing.items()))
    (row,) = results.slice(index, 1).to_pylist()
    shown = ", ".join(f"{name}={value}" for name, value in row.items())
    return PipelineError(
        f"{plan.node.title} failed on {len(failing)} of the results of its {plan.stage.name}",
        detail=f"{error}: ({shown})",
        hint='correct the code, or set such results aside with on_error="dead_letter"',
        location=plan.node.location,
    )
