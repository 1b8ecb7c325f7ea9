"""Proves a node right: computes it again as a batch, up to the same positions, and compares.

The same function is called, over all rows at once. What the stream judged to be late is part of its
history: those rows are left out here too. Invariant: nothing is changed, and the pipeline may run
meanwhile.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import singledispatch

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from headwater.engine.batch.finishing import Finishing
from headwater.engine.batch.node_run import NodeRun
from headwater.engine.exchange.frames import frame
from headwater.engine.home import checkpoint, node_progress
from headwater.engine.home.versions import producer as producer_of
from headwater.engine.inspection import Inspection
from headwater.engine.plan import keyed_results, phases, pruning
from headwater.engine.plan.phases import Phase, Stage
from headwater.engine.plan.shape import RESULTS
from headwater.engine.plan.user_code import call
from headwater.engine.proof.equality import frozen
from headwater.engine.proof.verdict import NOT_BEGUN, Rows, Verdict, compared, counted
from headwater.errors import PipelineError, UsageError
from headwater.log import Position
from headwater.operators.joins.as_of import REVISION
from headwater.operators.operator import NEVER
from headwater.pipeline.declaration import Declaration
from headwater.pipeline.node import Node, StreamNode, ViewNode
from headwater.record import DELETED
from headwater.values.keyed import declare, settle

ROW_BITS = 32


def verify(look: Inspection, name: str) -> Verdict:
    """Compute a view or stream again and compare it with what is stored."""
    node_run = look.node_run(name)
    if not node_run.node.verifiable:
        raise UsageError(
            f"{node_run.node.title} cannot be verified", detail="what it holds is not known here"
        )
    if node_run.stage is not None and not node_run.stage.operator.repeatable:
        return Verdict(
            name, unproved=f"its {node_run.stage.name} goes by what had arrived, and a batch has it all"
        )
    if not node_run.node.replacement_key and not _told_apart(node_run):
        return Verdict(name, unproved="its code drops or renames what tells results apart")
    if _hidden_estimates(node_run):
        return Verdict(name, unproved=f"its code goes on with estimates: {', '.join(_estimates(node_run))}")
    return replace(_with_stored(node_run.node, look, node_run), aside=_estimates(node_run))


@singledispatch
def _with_stored(node: Node, look: Inspection, node_run: NodeRun) -> Verdict:
    """Compute a node again and compare it with what is stored, as its type stores it."""
    raise NotImplementedError(f"how {node.title} is verified")


def _told_apart(node_run: NodeRun) -> bool:
    """Tell whether the results of a node still have what tells them apart."""
    identity = node_run.stage.operator.identity if node_run.stage else ()
    return set(identity) <= set(node_run.shape.schema.names)


def _estimates(node_run: NodeRun) -> tuple[str, ...]:
    """Return the columns of a node's operator that another run may tell otherwise."""
    if node_run.stage is None:
        return ()
    history = node_run.stage.operator.history
    return tuple(name for name in history if name != REVISION and name in node_run.stage.output.names)


def _hidden_estimates(node_run: NodeRun) -> bool:
    """Tell whether code behind the operator may have made something else of its estimates."""
    hidden = set(_estimates(node_run)) - set(node_run.shape.schema.names)
    if not hidden or node_run.shape.bare:
        return False
    used = pruning.used(node_run.shape.rows, node_run.shape.leaves).get(RESULTS)
    return used is None or bool(used & hidden)


@_with_stored.register
def _view(node: ViewNode, look: Inspection, node_run: NodeRun) -> Verdict:
    batch, stored = _snapshot(look, node_run.node)
    if batch < 0:
        return Verdict(node_run.node.name, unproved=NOT_BEGUN)
    rows = recomputed(look, node_run, batch)
    if node_run.node.on_error == "dead_letter":
        rows, _ = keyed_results.without_key(rows, node_run.node.key)
    fitted = settle(rows, declare(node_run.node.title, node_run.schema, node_run.node.key))
    living = _proved(pa.Table.from_batches([fitted.rows.filter(pa.array(~fitted.deleted))]), node_run)
    return compared(node_run.node, living.to_pylist(), _proved(stored, node_run).to_pylist(), living.schema)


@_with_stored.register
def _stream(node: StreamNode, look: Inspection, node_run: NodeRun) -> Verdict:
    batch = checkpoint.last_done(node_run.checkpoint)
    if batch < 0 or node_progress.read(node_run.home).batch < 0:
        return Verdict(node_run.node.name, unproved=NOT_BEGUN)
    producer = f"{look.pipeline.name}.{node_run.node.name}"
    wanted = _proved(recomputed(look, node_run, batch), node_run)
    found = _proved(_before(look, node.topic, batch, producer), node_run)
    identity = node_run.stage.operator.identity if node_run.stage else ()
    expected, stored = (_last(rows.to_pylist(), identity, found.schema) for rows in (wanted, found))
    return counted(node_run.node, expected, stored, found.schema)


def _last(rows: Rows, identity: Sequence[str], schema: pa.Schema) -> Rows:
    """Return the rows that count: all of them, or the last of each identity if it has not been deleted."""
    if not identity:
        return rows
    fields = [schema.field(name) for name in identity]
    last = {frozen(row, fields): row for row in rows}
    return [row for row in last.values() if not row.get(DELETED)]


def _proved(rows: pa.Table, node_run: NodeRun) -> pa.Table:
    """Return rows without the columns that tell how a result came about."""
    history = node_run.stage.operator.history if node_run.stage else ()
    return rows.drop_columns([name for name in history if name in rows.column_names])


def recomputed(look: Inspection, node_run: NodeRun, batch: int) -> pa.Table:
    """Return what a node's function makes of all its input up to a batch."""
    start = checkpoint.read_node_start(node_run.home)
    reached = checkpoint.input_progress(
        node_run.checkpoint, checkpoint.oldest_retained(node_run.checkpoint, batch)
    )
    frames = {
        name: _frame(node_run, each, start[name], reached.inputs[name].position)
        for name, each in node_run.upstreams.items()
    }
    clock = node_progress.read(node_run.home).clock(batch, node_run.mine(reached))
    late = _late(look, node_run, batch)
    noted = Noting(phases.whole(NEVER if clock is None else clock, late))
    with phases.during(noted):
        made = call(node_run.node, frames)
    try:
        return made.toArrow().cast(node_run.shape.schema)
    except Exception:  # a user's code raises anything; it is named then, or set aside as the stream did
        if noted.results is None or node_run.shape.bare:
            raise
        return Finishing(node_run.shape, node_run.inputs, most=None).finish(noted.results.toArrow()).made


class Noting:
    """Runs an operator, and notes what comes out of it: code after it may fail on some of that."""

    def __init__(self, phase: Phase):
        self._phase = phase
        self.results: DataFrame | None = None

    def __call__(self, stage: Stage) -> DataFrame:
        """Return what comes out of the operator."""
        self.results = self._phase(stage)
        return self.results


def _frame(node_run: NodeRun, each: Declaration, start: Position, end: Position) -> DataFrame:
    if each.name != node_run.shape.table:
        return node_run.inputs.batch(each, str(start), end)
    rows = keyed_results.newest(node_run.inputs.table(each, start, end), each.key)
    return node_run.inputs.frame(each, keyed_results.living(rows))


def _late(look: Inspection, node_run: NodeRun, batch: int) -> DataFrame | None:
    """Return the rows that the node's operator has judged to be late, up to a batch."""
    topic = look.late_topic(node_run.node)
    if node_run.stage is None or topic not in {each.name for each in look.log.topics()}:
        return None
    producer = producer_of(topic, look.version(node_run.node.name))
    found = _before(look, topic, batch, producer)
    if not found.num_rows:  # those of another version may have other columns
        return None
    names = node_run.stage.schema.names
    if not set(names) <= set(found.column_names):
        raise PipelineError(
            f"{node_run.node.title} has changed: the columns that go into its operator",
            detail=f'topic "{topic}", of what came too late for it, has not all of them',
            hint=f"{node_run.node.recompute_hint}, or take the change back",
            location=node_run.node.location,
        )
    return frame(look.spark, found.select(names).cast(node_run.stage.schema))


def _before(look: Inspection, topic: str, batch: int, producer: str) -> pa.Table:
    """Return the rows that a node has written to a topic as a producer, up to a batch."""
    schema = look.log.topic(topic).read_schema
    found = [pa.Table.from_batches([each]) for each in look.log.read(topic, meta=True)]
    if not found:
        return schema.empty_table()
    rows = pa.concat_tables(found)
    before = pc.less(rows["_sequence"], (batch + 1) << ROW_BITS)
    return rows.filter(pc.and_(before, pc.equal(rows["_producer"], producer))).select(schema.names)


def _snapshot(look: Inspection, node: Node) -> tuple[int, pa.Table]:
    """Return a view's rows and the batch that they are of; a commit in between is noticed."""
    view = look.store.view(node.name, look.version(node.name).number)
    while True:
        batch = view.batch()
        rows = view.scan().to_table()
        if view.batch() == batch:
            return batch, rows
