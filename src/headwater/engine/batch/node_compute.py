"""What a node makes of the records of a micro-batch: code before the operator, the operator, code after.

Few records are computed in the driver, many in Spark's workers. Nothing is committed here.

Invariant: the result depends on the records and on the states before the micro-batch alone, and which of the
two computes it makes no difference to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from headwater.engine.batch import packed_read
from headwater.engine.batch.inputs import Inputs
from headwater.engine.batch.micro_batch import MicroBatch, is_few
from headwater.engine.batch.post_operator import PostOperator
from headwater.engine.plan import keyed_results, phases
from headwater.engine.plan.node_plan import NodePlan
from headwater.engine.plan.phases import Capturing, Stage
from headwater.engine.plan.user_code import call
from headwater.engine.stage import bucket_step, runtime
from headwater.engine.stage.bucket_step import StepContext
from headwater.engine.stage.runtime import Results
from headwater.engine.state.bucket import BucketMeta
from headwater.pipeline.declaration import Declaration


@dataclass(frozen=True)
class NodeResult:
    """What a micro-batch has become in a node."""

    rows: pa.Table
    late: pa.Table | None = None
    """Rows that came behind the watermark."""
    rejected: list[pa.Table] = field(default_factory=list)
    """Rows of the operator, and results of it, on which code fails, each with its error."""
    buckets: Mapping[int, BucketMeta] = field(default_factory=dict)
    """The states that the operator has now."""
    notes: list[dict[str, Any]] = field(default_factory=list)
    """What its buckets count."""


class NodeCompute:
    """A node's part of one micro-batch."""

    def __init__(self, plan: NodePlan, inputs: Inputs, micro_batch: MicroBatch):
        self._plan, self._inputs, self._micro_batch = plan, inputs, micro_batch
        self._upstreams = plan.upstreams
        self._empty = not micro_batch.size(list(plan.upstreams))
        self._small = micro_batch.is_small(list(plan.upstreams))

    @property
    def needs_spark(self) -> bool:
        """Whether there is code of the user's to run, or so much that workers compute it."""
        direct = self._plan.direct_inputs and (self._plan.stage is None or self._plan.direct_output)
        return not self._empty and not (direct and self._small)

    def without_operator(self) -> NodeResult:
        """Return what a node without an operator makes of the records."""
        return NodeResult(self._plain())

    def with_operator(self, stage: Stage, context: StepContext) -> NodeResult:
        """Return what comes out of a node's operator, and of the code behind it."""
        results = self._stepped(stage, context)
        after = PostOperator(self._plan, self._inputs).run(results.main)
        rejected = [*results.dead, *([] if after.rejected is None else [after.rejected])]
        return NodeResult(after.rows, results.late, rejected, results.buckets, results.notes)

    def _plain(self) -> pa.Table:
        if self._empty:
            return self._plan.schema.empty_table()
        if self._plan.table is not None:
            return self._of_table(self._upstreams[self._plan.table])
        if self._plan.direct_inputs and self._small:
            (rows,) = self._direct_tables()
            return rows.cast(self._plan.schema)
        return self._called(self._frames(), few=self._small)

    def _of_table(self, table: Declaration) -> pa.Table:
        """Return what becomes of the rows that have changed; a micro-batch of them fits in the driver."""
        changed = keyed_results.last_per_key(self._micro_batch.table(self._inputs, table), table.key)
        present = keyed_results.without_deletions(changed)
        if self._plan.direct_inputs:
            rows = present.cast(self._plan.schema)
        else:
            frames = {table.name: self._inputs.frame(table, present)}
            rows = self._called(frames, few=is_few(present.num_rows))
        return keyed_results.with_deletions(self._plan.node, rows, changed)

    def _called(self, frames: dict[str, DataFrame], *, few: bool) -> pa.Table:
        """Return what a node without an operator makes of its upstreams."""
        rows = self._plan.local_plan.evaluated(frames) if few else None
        return call(self._plan.node, frames).toArrow().cast(self._plan.schema) if rows is None else rows

    def _stepped(self, stage: Stage, context: StepContext) -> Results:
        if not self._small:
            return runtime.step_in_workers(context, self._packed(stage, context.count), stage.output)
        rows = self._operator_input(stage)
        done = bucket_step.step_in_driver(context, rows)
        results = runtime.combine(done, stage.late, stage.output)
        results.check(rows.num_rows)
        return results

    def _packed(self, stage: Stage, buckets: int) -> DataFrame:
        """Return the rows that go into the operator, on their way to its buckets."""
        if not self._plan.direct_inputs:
            return runtime.packed(self._before_operator(), stage.operator, buckets, tally=True)
        upstreams = [self._upstreams[name] for name in self._plan.direct_inputs]
        parts = [
            part
            for side, upstream in enumerate(upstreams)
            for part in self._micro_batch.parts(self._inputs, upstream, side)
        ]
        schemas = [self._inputs.schema(upstream) for upstream in upstreams]
        return packed_read.packed(stage.rows.sparkSession, parts, stage, schemas, buckets)

    def _operator_input(self, stage: Stage) -> pa.Table:
        """Return the few rows that go into the operator."""
        if self._empty:
            return stage.schema.empty_table()
        if self._plan.direct_inputs:
            return stage.input_rows(self._direct_tables())
        frames = self._frames()
        sides = [rows for side in self._plan.local_sides if (rows := side.evaluated(frames)) is not None]
        if len(sides) == len(self._plan.local_sides):
            return stage.input_rows(sides)
        return self._before_operator().toArrow().cast(stage.schema)

    def _direct_tables(self) -> list[pa.Table]:
        """Return the records of upstreams that no code comes before."""
        upstreams = [self._upstreams[name] for name in self._plan.direct_inputs]
        return [self._micro_batch.table(self._inputs, upstream) for upstream in upstreams]

    def _before_operator(self) -> DataFrame:
        """Return what user code makes of the records, up to the operator."""
        capturing = Capturing()
        with phases.during(capturing):
            call(self._plan.node, self._frames())
        assert capturing.stage is not None
        return capturing.stage.rows

    def _frames(self) -> dict[str, DataFrame]:
        read, named = self._micro_batch, self._upstreams.items()
        if self._small:
            return {name: read.frame(self._inputs, upstream) for name, upstream in named}
        return {name: read.part(self._inputs, upstream, self._plan.used) for name, upstream in named}
