"""Proves a node right: computes it again as a batch, up to the same positions, and compares.

The same function is called, over all rows at once. What the stream judged to be late is part of its
history: those rows are left out here too. Invariant: nothing is changed, and the pipeline may run
meanwhile.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from functools import singledispatch

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from headwater.engine.batch.node_run import NodeRun
from headwater.engine.batch.post_operator import PostOperator
from headwater.engine.exchange.frames import frame
from headwater.engine.home import checkpoint, node_progress
from headwater.engine.home.versions import producer as producer_of
from headwater.engine.inspection import Inspection
from headwater.engine.plan import keyed_results, phases, pruning
from headwater.engine.plan.node_plan import RESULTS
from headwater.engine.plan.phases import Phase, Stage
from headwater.engine.plan.user_code import call
from headwater.engine.proof.compare import compare_by_key, compare_counts
from headwater.engine.proof.equality import comparable
from headwater.engine.proof.matching import RowMatcher
from headwater.engine.proof.verdict import NOT_BEGUN, Rows, Verdict
from headwater.errors import PipelineError, UsageError
from headwater.log import Position
from headwater.operators.event_time import NEVER
from headwater.operators.joins.as_of import REVISION
from headwater.pipeline.declaration import Declaration
from headwater.pipeline.node import Node, SinkNode, StreamNode, ViewNode
from headwater.record import DELETED
from headwater.sinks.sink import Contents
from headwater.values.keyed import declare, settle

ROW_BITS = 32
LOOKS, PAUSE = 5, 1.0
"""How often a target that changes while it is read is looked at, and how many seconds are in between."""


def verify(inspection: Inspection, name: str) -> Verdict:
    """Compute a node again and compare it with what is stored."""
    node_run = inspection.node_run(name)
    if not node_run.node.verifiable:
        raise UsageError(
            f"{node_run.node.title} cannot be verified", detail="what it holds is not known here"
        )
    if node_run.stage is not None and not node_run.stage.operator.repeatable:
        return Verdict(
            name, unproved=f"its {node_run.stage.name} goes by what had arrived, and a batch has it all"
        )
    if not node_run.node.replacement_key and not _has_identity(node_run):
        return Verdict(name, unproved="its code drops or renames what tells results apart")
    if _hidden_estimates(node_run):
        return Verdict(name, unproved=f"its code goes on with estimates: {', '.join(_estimates(node_run))}")
    return replace(_compare_with_stored(node_run.node, inspection, node_run), aside=_estimates(node_run))


@singledispatch
def _compare_with_stored(node: Node, inspection: Inspection, node_run: NodeRun) -> Verdict:
    """Compute a node again and compare it with what is stored, as its type stores it."""
    raise NotImplementedError(f"how {node.title} is verified")


def _has_identity(node_run: NodeRun) -> bool:
    """Tell whether the results of a node still have the identity that its operator gives them."""
    identity = node_run.stage.operator.identity if node_run.stage else ()
    return set(identity) <= set(node_run.plan.schema.names)


def _estimates(node_run: NodeRun) -> tuple[str, ...]:
    """Return the columns of a node's operator that another run may estimate otherwise."""
    if node_run.stage is None:
        return ()
    uncompared = node_run.stage.operator.uncompared_columns
    return tuple(name for name in uncompared if name != REVISION and name in node_run.stage.output.names)


def _hidden_estimates(node_run: NodeRun) -> bool:
    """Tell whether code behind the operator may have made something else of its estimates."""
    hidden = set(_estimates(node_run)) - set(node_run.plan.schema.names)
    if not hidden or node_run.plan.direct_output:
        return False
    used = pruning.used(node_run.plan.rows, node_run.plan.leaves).get(RESULTS)
    return used is None or bool(used & hidden)


@_compare_with_stored.register
def _view(node: ViewNode, inspection: Inspection, node_run: NodeRun) -> Verdict:
    batch, stored = _snapshot(inspection, node_run.node)
    if batch < 0:
        return Verdict(node_run.node.name, unproved=NOT_BEGUN)
    living = _living(inspection, node_run, batch)
    return compare_by_key(
        node, living.to_pylist(), _compared_columns(stored, node_run).to_pylist(), living.schema
    )


def _living(inspection: Inspection, node_run: NodeRun, batch: int) -> pa.Table:
    """Return the rows that a node should have by its key after a batch."""
    key, rows = node_run.node.replacement_key, recomputed(inspection, node_run, batch)
    if node_run.node.on_error == "dead_letter":
        rows, _ = keyed_results.split_null_keys(rows, key)
    fitted = settle(rows, declare(node_run.node.title, node_run.schema, key))
    return _compared_columns(pa.Table.from_batches([fitted.rows.filter(pa.array(~fitted.deleted))]), node_run)


@_compare_with_stored.register
def _sink(node: SinkNode, inspection: Inspection, node_run: NodeRun) -> Verdict:
    done = node_progress.read(node_run.home).batch
    if done < 0:
        return Verdict(node.name, unproved=NOT_BEGUN)
    for look in range(LOOKS):
        if look:
            time.sleep(PAUSE)
        version, home = inspection.version(node.name).number, inspection.pipeline.home
        with node.open_target(node_run.schema, version, home) as sink:
            contents = sink.read_back()
            if contents is None:
                return Verdict(node.name, unproved="its target cannot be read back")
            # A target that knows less than was committed there has lost it, and is compared with that.
            expected = _living(inspection, node_run, max(contents.batch, done))
            verdict = _compare_with_contents(node, expected, contents)
            if verdict.ok or contents.settled():
                return verdict
    return Verdict(node.name, unproved="its target changes while it is read; let the pipeline rest")


def _compare_with_contents(node: SinkNode, expected: pa.Table, contents: Contents) -> Verdict:
    """Compare what a target holds, batch by batch: rows are looked at only where their digests differ."""
    matcher, keyed = RowMatcher(expected), replace(node, key=node.replacement_key)
    for rows in contents.rows:
        matcher.take(rows)
    found = compare_by_key(
        keyed, matcher.missing().to_pylist(), matcher.unmatched().to_pylist(), expected.schema
    )
    return replace(
        found,
        equal=found.equal + matcher.equal,
        missing=() if contents.expires else found.missing,
        extra=(*found.extra, *contents.unreadable),
        expired=len(found.missing) if contents.expires else 0,
    )


@_compare_with_stored.register
def _stream(node: StreamNode, inspection: Inspection, node_run: NodeRun) -> Verdict:
    batch = checkpoint.last_done(node_run.checkpoint)
    if batch < 0 or node_progress.read(node_run.home).batch < 0:
        return Verdict(node_run.node.name, unproved=NOT_BEGUN)
    producer = f"{inspection.pipeline.name}.{node_run.node.name}"
    wanted = _compared_columns(recomputed(inspection, node_run, batch), node_run)
    found = _compared_columns(_written(inspection, node.topic, batch, producer), node_run)
    identity = node_run.stage.operator.identity if node_run.stage else ()
    expected, stored = (
        _last_per_identity(rows.to_pylist(), identity, found.schema) for rows in (wanted, found)
    )
    return compare_counts(node_run.node, expected, stored, found.schema)


def _last_per_identity(rows: Rows, identity: Sequence[str], schema: pa.Schema) -> Rows:
    """Return the rows that count: all of them, or the last of each identity if it has not been deleted."""
    if not identity:
        return rows
    fields = [schema.field(name) for name in identity]
    last = {comparable(row, fields): row for row in rows}
    return [row for row in last.values() if not row.get(DELETED)]


def _compared_columns(rows: pa.Table, node_run: NodeRun) -> pa.Table:
    """Return rows without the columns of how a result came about."""
    uncompared = node_run.stage.operator.uncompared_columns if node_run.stage else ()
    return rows.drop_columns([name for name in uncompared if name in rows.column_names])


def recomputed(inspection: Inspection, node_run: NodeRun, batch: int) -> pa.Table:
    """Return what a node's function makes of all its input up to a batch."""
    start = checkpoint.read_node_start(node_run.home)
    reached = checkpoint.input_progress(
        node_run.checkpoint, checkpoint.oldest_retained(node_run.checkpoint, batch)
    )
    frames = {
        name: _frame(node_run, upstream, start[name], reached.inputs[name].position)
        for name, upstream in node_run.upstreams.items()
    }
    clock = node_progress.read(node_run.home).watermark(batch, node_run.restrict(reached))
    late = _late(inspection, node_run, batch)
    recording = RecordingPhase(phases.over_all_rows(NEVER if clock is None else clock, late))
    with phases.during(recording):
        rows = call(node_run.node, frames)
    try:
        return rows.toArrow().cast(node_run.plan.schema)
    except Exception:  # a user's code raises anything; it is named then, or set aside as the stream did
        if recording.results is None or node_run.plan.direct_output:
            raise
        return PostOperator(node_run.plan, node_run.inputs, limit=None).run(recording.results.toArrow()).rows


class RecordingPhase:
    """Runs an operator, and records what comes out of it: code after it may fail on some of that."""

    def __init__(self, phase: Phase):
        self._phase = phase
        self.results: DataFrame | None = None

    def __call__(self, stage: Stage) -> DataFrame:
        """Return what comes out of the operator."""
        self.results = self._phase(stage)
        return self.results


def _frame(node_run: NodeRun, upstream: Declaration, start: Position, end: Position) -> DataFrame:
    if upstream.name != node_run.plan.table:
        return node_run.inputs.batch(upstream, str(start), end)
    rows = keyed_results.last_per_key(node_run.inputs.table(upstream, start, end), upstream.key)
    return node_run.inputs.frame(upstream, keyed_results.without_deletions(rows))


def _late(inspection: Inspection, node_run: NodeRun, batch: int) -> DataFrame | None:
    """Return the rows that the node's operator has judged to be late, up to a batch."""
    topic = inspection.late_topic(node_run.node)
    if node_run.stage is None or topic not in {each.name for each in inspection.log.topics()}:
        return None
    producer = producer_of(topic, inspection.version(node_run.node.name))
    found = _written(inspection, topic, batch, producer)
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
    return frame(inspection.spark, found.select(names).cast(node_run.stage.schema))


def _written(inspection: Inspection, topic: str, batch: int, producer: str) -> pa.Table:
    """Return the rows that a node has written to a topic as a producer, up to a batch."""
    schema = inspection.log.topic(topic).read_schema
    found = [pa.Table.from_batches([each]) for each in inspection.log.read(topic, meta=True)]
    if not found:
        return schema.empty_table()
    rows = pa.concat_tables(found)
    before = pc.less(rows["_sequence"], (batch + 1) << ROW_BITS)
    return rows.filter(pc.and_(before, pc.equal(rows["_producer"], producer))).select(schema.names)


def _snapshot(inspection: Inspection, node: Node) -> tuple[int, pa.Table]:
    """Return a view's rows and the batch that they are of; a commit in between is noticed."""
    view = inspection.store.view(node.name, inspection.version(node.name).number)
    while True:
        batch = view.batch()
        rows = view.scan().to_table()
        if view.batch() == batch:
            return batch, rows
