"""What a node turns out to be when its function is called over empty streams: columns, operator, time.

``headwater check`` and a runner look at a node here, and nowhere else, so that they agree. Invariant:
no log is opened, nothing is read and nothing started; what has a plan can run in micro-batches.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
from pyspark.sql import DataFrame

from headwater.engine.plan import column_marks, keyed_results, phases, pruning, refusal_messages
from headwater.engine.plan.empty_stream import EmptyStream
from headwater.engine.plan.local_plan import LocalPlan
from headwater.engine.plan.phases import Capturing, Stage, arrow_schema
from headwater.engine.plan.pruning import Used
from headwater.engine.plan.refusal_messages import NotRowByRow, Refusal
from headwater.engine.plan.row_by_row import check_row_by_row, drops_rows
from headwater.engine.plan.user_code import call, pickle_by_value
from headwater.errors import PipelineError
from headwater.pipeline.declaration import Declaration
from headwater.pipeline.node import Node
from headwater.record import DELETED

RESULTS = "what comes out of its operator"
"""The name of that in plans, beside those of upstreams."""


@dataclass(frozen=True)
class NodePlan:
    """What a node is."""

    node: Node
    upstreams: Mapping[str, Declaration]
    rows: DataFrame
    """What the function returns, of no rows."""
    schema: pa.Schema
    event_time: str | None
    stage: Stage | None
    direct_inputs: tuple[str, ...]
    """The upstreams that reach the operator, or the sink, as they are; none if code is in between."""
    direct_output: bool
    """Whether what comes out of the operator is the node's result, as it is."""
    table: str | None
    """The table that the node is a view of, row by row."""
    leaves: Mapping[int | None, str]
    """The names of upstreams, and of the operator's results, by what they are known by in plans."""

    @property
    def stored(self) -> pa.Schema:
        """The columns that are stored: all but the one that marks deletions."""
        return pa.schema([field for field in self.schema if field.name != DELETED])

    @cached_property
    def used(self) -> Used:
        """The columns that are used of upstreams that are not used whole."""
        return pruning.used(self.rows if self.stage is None else self.stage.rows, self.leaves)

    @cached_property
    def local_plan(self) -> LocalPlan:
        """The code up to the sink, over few rows."""
        return LocalPlan(self.rows, self.leaves)

    @cached_property
    def local_sides(self) -> list[LocalPlan]:
        """The code up to each input of the operator, over few rows."""
        return [LocalPlan(side, self.leaves) for side in self.stage.sides] if self.stage else []


def plan_node(
    node: Node, upstreams: Mapping[str, Declaration], empty_streams: Mapping[str, EmptyStream]
) -> NodePlan:
    """Call a node's function over empty streams, and see what it is."""
    pickle_by_value(node)
    capturing = Capturing()
    frames = {name: empty_streams[name].frame for name in upstreams}
    with phases.during(capturing):
        rows = call(node, frames)
    stage, schema = capturing.stage, arrow_schema(rows)
    _PlanCheck(node, empty_streams).check(rows, capturing)
    node.check_named_columns(schema)
    keyed_results.check_deletions(node, stage, schema)
    return NodePlan(
        node,
        upstreams,
        rows,
        schema,
        column_marks.event_time_of(rows),
        stage,
        direct_inputs=_direct_inputs(stage.sides if stage else (rows,), frames),
        direct_output=rows is capturing.output,
        table=keyed_results.shown_table(node, upstreams, stage),
        leaves=_leaves(upstreams, empty_streams, capturing),
    )


def _leaves(
    names: Iterable[str], empty_streams: Mapping[str, EmptyStream], capturing: Capturing
) -> dict[int | None, str]:
    leaves: dict[int | None, str] = {empty_streams[name].leaf: name for name in names}
    if capturing.results is not None:
        leaves[capturing.results.leaf] = RESULTS
    return leaves


class _PlanCheck:
    """Looks at the plans that a function has made: before its operator, and after it."""

    def __init__(self, node: Node, empty_streams: Mapping[str, EmptyStream]):
        self._node = node
        self._leaves: dict[int | None, str] = {each.leaf: name for name, each in empty_streams.items()}
        self._tables = {name for name, each in empty_streams.items() if each.is_table}

    def check(self, rows: DataFrame, capturing: Capturing) -> None:
        """Refuse what is not row by row."""
        if capturing.stage is None:
            self._check_without_operator(rows)
            return
        for number, side in enumerate(capturing.stage.sides):
            self._check_before_operator(side, capturing.stage, number)
        assert capturing.results is not None
        leaves = {**self._leaves, capturing.results.leaf: RESULTS}
        try:
            read = check_row_by_row(rows, leaves)
        except NotRowByRow as error:
            raise self._refused_after(error.refusal, capturing.stage) from None
        if read != {RESULTS}:
            raise _upstream_after(self._node, capturing.stage)

    def _check_without_operator(self, rows: DataFrame) -> None:
        read = self._sources(rows)
        if len(read) > 1 and read & self._tables and self._node.replacement_key:
            raise self._refused(refusal_messages.SEVERAL)

    def _check_before_operator(self, side: DataFrame, stage: Stage, number: int) -> None:
        if not self._sources(side) & self._tables:
            return
        if DELETED not in side.columns:
            raise self._refused(refusal_messages.UNMARKED)
        if number in stage.tables and drops_rows(side):
            raise self._refused(refusal_messages.FILTERED)

    def _sources(self, rows: DataFrame) -> frozenset[str]:
        try:
            return check_row_by_row(rows, self._leaves)
        except NotRowByRow as error:
            raise self._refused(error.refusal, error.read) from None

    def _refused(self, refusal: Refusal, read: frozenset[str] = frozenset()) -> PipelineError:
        return _error(self._node, refusal, refusal_messages.hint(refusal, self._tables, read))

    def _refused_after(self, refusal: Refusal, stage: Stage) -> PipelineError:
        if any(each & set(self._leaves.values()) for each in refusal.joined):
            return _upstream_after(self._node, stage)
        hint = refusal_messages.hint(refusal, (), ())
        return _error(
            self._node,
            refusal,
            f"make a stream of the results of {stage.name}; in a node that reads it, {hint}",
        )


def _error(node: Node, refusal: Refusal, hint: str) -> PipelineError:
    return PipelineError(
        f"{node.title} {refusal.what}", detail=refusal.detail, hint=hint, location=node.location
    )


def _upstream_after(node: Node, stage: Stage) -> PipelineError:
    return PipelineError(
        f"{node.title} uses an upstream after its operator, {stage.name}",
        detail="what comes after an operator sees its results only",
        hint="use the upstream before the operator, or make a stream of the operator's results",
        location=node.location,
    )


def _direct_inputs(sides: tuple[DataFrame, ...], frames: Mapping[str, DataFrame]) -> tuple[str, ...]:
    names = {id(frame): name for name, frame in frames.items()}
    return tuple(names[id(side)] for side in sides) if all(id(side) in names for side in sides) else ()
