"""What a node turns out to be when its function is called over streams: columns, operator, time.

Invariant: nothing is read and nothing started.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from headwater.engine import applying, clocked, pruning, tables
from headwater.engine.applying import Capturing, Stage, arrow_schema
from headwater.engine.calling import call, carry
from headwater.engine.inputs import Inputs
from headwater.engine.pruning import Used
from headwater.errors import PipelineError
from headwater.node import Declaration, Node

_STATEFUL = {
    *("Aggregate", "Distinct", "Deduplicate", "DeduplicateWithinWatermark", "Window", "Sort"),
    *("GlobalLimit", "LocalLimit", "Intersect", "Except", "FlatMapGroupsWithState"),
    *("FlatMapGroupsInPandasWithState", "TransformWithState", "TransformWithStateInPySpark"),
}
"""Spark's own operators that need more than the rows of one micro-batch."""


@dataclass(frozen=True)
class Shape:
    """What a node is."""

    node: Node
    upstreams: Mapping[str, Declaration]
    rows: DataFrame
    """What the function returns; behind an operator, no rows."""
    schema: pa.Schema
    event_time: str | None
    stage: Stage | None
    straight: tuple[str, ...]
    """The upstreams that reach the operator, or the sink, as they are; none if code is in between."""
    bare: bool
    """Whether what comes out of the operator is the node's result, as it is."""
    used: Used
    """The columns that are used of topics that are not used whole."""
    table: str | None
    """The table that the node is a view of, row by row."""
    own: bool
    """Whether Spark's own stateful operators are in it, so that it needs a query of its own."""


def shape(node: Node, upstreams: Mapping[str, Declaration], inputs: Inputs) -> Shape:
    """Call a node's function over streams, and see what it is."""
    carry(node)
    capturing = Capturing()
    frames = inputs.streams(upstreams)
    with applying.during(capturing):
        rows = call(node, frames)
    stage = capturing.stage
    if stage is not None and rows.isStreaming:
        raise PipelineError(
            f"{node.title} uses an upstream after its operator, {stage.name}",
            detail="what comes after an operator sees its results only",
            hint="use the upstream before the operator, or make a stream of the operator's results",
            place=node.place,
        )
    tables.check_deletions(node, stage, arrow_schema(rows))
    taken = rows if stage is None else stage.rows
    return Shape(
        node,
        upstreams,
        rows,
        arrow_schema(rows),
        node.event_time or clocked.event_time_of(rows),
        stage,
        straight=_straight(stage.sides if stage else (rows,), frames),
        bare=rows is capturing.made,
        used=pruning.used(taken),
        table=tables.read_by(node, upstreams, stage),
        own=_needs_state(taken._jdf.queryExecution().analyzed()),
    )


def _straight(sides: tuple[DataFrame, ...], frames: Mapping[str, DataFrame]) -> tuple[str, ...]:
    names = {id(frame): name for name, frame in frames.items()}
    return tuple(names[id(side)] for side in sides) if all(id(side) in names for side in sides) else ()


def _needs_state(plan: Any) -> bool:
    """Tell whether a plan over streams has a stateful operator of Spark's own."""
    if not plan.isStreaming():
        return False
    children = [plan.children().apply(number) for number in range(plan.children().size())]
    kind = plan.getClass().getSimpleName()
    joins = kind == "Join" and all(child.isStreaming() for child in children)
    return joins or kind in _STATEFUL or any(map(_needs_state, children))
