"""The records of a micro-batch on which a node's code before its operator fails, each by its place.

They are read once, by the driver, and looked for in one input at a time, with no rows of the others.
Invariant: nothing is written, and a record that is named fails alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, islice

import pyarrow as pa
from pyspark.sql import DataFrame

from headwater.engine.batch.inputs import Inputs
from headwater.engine.batch.micro_batch import MicroBatch
from headwater.engine.failure.failing_rows import FailingRowSearch
from headwater.engine.failure.guarded_plan import ROW
from headwater.engine.failure.rejected_row import RecordOffset, RejectedRow
from headwater.engine.plan import keyed_results, phases
from headwater.engine.plan.node_plan import NodePlan
from headwater.engine.plan.phases import Capturing
from headwater.engine.plan.user_code import call
from headwater.errors import PipelineError
from headwater.pipeline.declaration import Declaration
from headwater.pipeline.node import Node

MOST = 100
"""Records of one batch that are named, or set aside, at once."""


class CodeFailed(PipelineError):
    """A node's code that has failed, on which records is not known yet."""


class FailedOnRecords(PipelineError):
    """A batch that cannot be computed because of some of its records."""

    def __init__(self, node: Node, records: list[RejectedRow]):
        unread = records[0].record is not None  # then no code has seen it
        mend = "the source's declaration, or what is sent" if unread else "the code"
        super().__init__(
            f"{node.title} {'cannot read' if unread else 'failed on'} {len(records)} record"
            + ("s" if len(records) != 1 else ""),
            detail=str(records[0]),
            hint=f'correct {mend}, or set such records aside with on_error="dead_letter"',
            location=node.location,
        )
        self.records = records


def find(plan: NodePlan, inputs: Inputs, micro_batch: MicroBatch) -> list[RejectedRow]:
    """Return the records of a micro-batch on which a node's code fails, up to ``MOST`` of them."""
    unreadable = list(islice(_unreadable(plan, inputs, micro_batch), MOST))
    if unreadable:
        return unreadable
    parts = (_of(plan, inputs, micro_batch, upstream) for upstream in plan.upstreams.values())
    return list(islice(chain.from_iterable(parts), MOST))


def _unreadable(plan: NodePlan, inputs: Inputs, micro_batch: MicroBatch) -> Iterator[RejectedRow]:
    """Yield the records that do not fit what the source is declared to be, with what they hold."""
    for upstream in plan.upstreams.values():
        topic = str(getattr(upstream, "topic", ""))
        for error in micro_batch.unreadable(inputs, upstream):
            text = None if error.value is None else error.value.decode("utf-8", "backslashreplace")
            place = RecordOffset(topic, error.partition, error.offset)
            yield RejectedRow(error.detail or error.message, place, text or "")


def _of(
    plan: NodePlan, inputs: Inputs, micro_batch: MicroBatch, upstream: Declaration
) -> Iterator[RejectedRow]:
    """Yield the records of one input."""
    records = micro_batch.table_with_offsets(inputs, upstream)
    if upstream.name == plan.table:
        records = keyed_results.without_deletions(records)
    if not records.num_rows:
        return
    rows = records.select(inputs.schema(upstream).names)

    def code(rows: pa.Table) -> DataFrame:
        frames = {name: inputs.empty(other) for name, other in plan.upstreams.items()}
        return _before(plan, {**frames, upstream.name: inputs.frame(upstream, rows).drop(ROW)})

    for row, error in FailingRowSearch(plan.node, code).failing(rows, MOST).items():
        partition, offset = (records[name][row].as_py() for name in ("_partition", "_offset"))
        yield RejectedRow(error, RecordOffset(str(getattr(upstream, "topic", "")), partition, offset))


def _before(plan: NodePlan, frames: dict[str, DataFrame]) -> DataFrame:
    """Return what the node's code makes of frames, up to its operator."""
    capturing = Capturing()
    with phases.during(capturing):
        rows = call(plan.node, frames)
    return rows if capturing.stage is None else capturing.stage.rows
