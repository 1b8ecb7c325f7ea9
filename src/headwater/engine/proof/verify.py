"""Proves a node right: computes it again as a batch, up to the same positions, and compares.

The same function is called, over all rows at once. What the stream judged to be late is part of its
history: those rows are left out here too. Invariant: nothing is changed, and the pipeline may run
meanwhile.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import singledispatch
from typing import Any

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
from headwater.errors import PipelineError, UsageError
from headwater.log import Position
from headwater.operators.joins.as_of import REVISION
from headwater.operators.operator import NEVER
from headwater.pipeline.declaration import Declaration
from headwater.pipeline.node import Node, StreamNode, ViewNode
from headwater.values.fitting import DELETED
from headwater.values.keyed import declare, settle

EXAMPLES = 5
ROW_BITS = 32

Row = Mapping[str, Any]
Rows = Sequence[Row]


@dataclass(frozen=True)
class Verdict:
    """How a node's stored results compare with those of a batch over the same input."""

    node: str
    equal: int = 0
    missing: tuple[Row, ...] = ()
    """Rows that the batch has and the node has not."""
    extra: tuple[Row, ...] = ()
    """Rows that the node has and the batch has not."""
    different: tuple[tuple[Row, Row], ...] = ()
    """Rows of one key: what the batch has, what the node has."""
    unproved: str | None = None
    """Why nothing can be proved, if that is so: then no row was compared."""
    aside: tuple[str, ...] = ()
    """Columns that were not compared: estimates, which another run may tell otherwise."""

    @property
    def ok(self) -> bool:
        """Whether all rows are equal."""
        return not (self.missing or self.extra or self.different)

    def examples(self) -> Iterator[str]:
        """Yield some of what is wrong, in words."""
        yield from (f"missing {_text(row)}" for row in self.missing[:EXAMPLES])
        yield from (f"extra {_text(row)}" for row in self.extra[:EXAMPLES])
        yield from (f"should be {_text(a)}, is {_text(b)}" for a, b in self.different[:EXAMPLES])


def verify(look: Inspection, name: str) -> Verdict:
    """Compute a view or stream again and compare it with what is stored."""
    member = look.member(name)
    if not member.node.verifiable:
        raise UsageError(f"{member.node.title} cannot be verified", detail="what it holds is not known here")
    if member.stage is not None and not member.stage.operator.repeatable:
        return Verdict(
            name, unproved=f"its {member.stage.name} goes by what had arrived, and a batch has it all"
        )
    if not member.node.replacement_key and not _told_apart(member):
        return Verdict(name, unproved="its code drops or renames what tells results apart")
    if _hidden_estimates(member):
        return Verdict(name, unproved=f"its code goes on with estimates: {', '.join(_estimates(member))}")
    return replace(_with_stored(member.node, look, member), aside=_estimates(member))


@singledispatch
def _with_stored(node: Node, look: Inspection, member: NodeRun) -> Verdict:
    """Compute a node again and compare it with what is stored, as its type stores it."""
    raise NotImplementedError(f"how {node.title} is verified")


def _told_apart(member: NodeRun) -> bool:
    """Tell whether the results of a node still have what tells them apart."""
    identity = member.stage.operator.identity if member.stage else ()
    return set(identity) <= set(member.shape.schema.names)


def _estimates(member: NodeRun) -> tuple[str, ...]:
    """Return the columns of a node's operator that another run may tell otherwise."""
    if member.stage is None:
        return ()
    history = member.stage.operator.history
    return tuple(name for name in history if name != REVISION and name in member.stage.output.names)


def _hidden_estimates(member: NodeRun) -> bool:
    """Tell whether code behind the operator may have made something else of its estimates."""
    hidden = set(_estimates(member)) - set(member.shape.schema.names)
    if not hidden or member.shape.bare:
        return False
    used = pruning.used(member.shape.rows, member.shape.leaves).get(RESULTS)
    return used is None or bool(used & hidden)


@_with_stored.register
def _view(node: ViewNode, look: Inspection, member: NodeRun) -> Verdict:
    batch, stored = _snapshot(look, member.node)
    if batch < 0:
        return Verdict(member.node.name, unproved=_NOTHING)
    rows = recomputed(look, member, batch)
    if member.node.on_error == "dead_letter":
        rows, _ = keyed_results.without_key(rows, member.node.key)
    fitted = settle(rows, declare(member.node.title, member.schema, member.node.key))
    living = _proved(pa.Table.from_batches([fitted.rows.filter(pa.array(~fitted.deleted))]), member)
    return compared(member.node, living.to_pylist(), _proved(stored, member).to_pylist(), living.schema)


@_with_stored.register
def _stream(node: StreamNode, look: Inspection, member: NodeRun) -> Verdict:
    batch = checkpoint.last_done(member.checkpoint)
    if batch < 0 or node_progress.read(member.home).batch < 0:
        return Verdict(member.node.name, unproved=_NOTHING)
    producer = f"{look.pipeline.name}.{member.node.name}"
    wanted = _proved(recomputed(look, member, batch), member)
    found = _proved(_before(look, node.topic, batch, producer), member)
    identity = member.stage.operator.identity if member.stage else ()
    expected, stored = (_last(rows.to_pylist(), identity, found.schema) for rows in (wanted, found))
    return counted(member.node, expected, stored, found.schema)


_NOTHING = "it has not processed anything yet"


def counted(node: Declaration, expected: Rows, stored: Rows, schema: pa.Schema) -> Verdict:
    """Compare rows that a node should have with those that it has, and how often it has each."""
    wanted, found = (Counter(frozen(row, schema) for row in rows) for rows in (expected, stored))
    known = {frozen(row, schema): row for row in (*expected, *stored)}
    missing, extra = (
        tuple(known[form] for form in rest.elements()) for rest in (wanted - found, found - wanted)
    )
    return Verdict(node.name, (wanted & found).total(), missing, extra)


def _last(rows: Rows, identity: Sequence[str], schema: pa.Schema) -> Rows:
    """Return the rows that count: all of them, or the last of each identity if it has not been deleted."""
    if not identity:
        return rows
    fields = [schema.field(name) for name in identity]
    last = {frozen(row, fields): row for row in rows}
    return [row for row in last.values() if not row.get(DELETED)]


def _proved(rows: pa.Table, member: NodeRun) -> pa.Table:
    """Return rows without the columns that tell how a result came about."""
    history = member.stage.operator.history if member.stage else ()
    return rows.drop_columns([name for name in history if name in rows.column_names])


def recomputed(look: Inspection, member: NodeRun, batch: int) -> pa.Table:
    """Return what a node's function makes of all its input up to a batch."""
    start = checkpoint.begun_of(member.home)
    reached = checkpoint.reached(member.checkpoint, checkpoint.kept(member.checkpoint, batch))
    frames = {
        name: _frame(member, each, start[name], reached.inputs[name].position)
        for name, each in member.upstreams.items()
    }
    clock = node_progress.read(member.home).clock(batch, member.mine(reached))
    late = _late(look, member, batch)
    noted = Noting(phases.whole(NEVER if clock is None else clock, late))
    with phases.during(noted):
        made = call(member.node, frames)
    try:
        return made.toArrow().cast(member.shape.schema)
    except Exception:  # a user's code raises anything; it is named then, or set aside as the stream did
        if noted.results is None or member.shape.bare:
            raise
        return Finishing(member.shape, member.inputs, most=None).finish(noted.results.toArrow()).made


class Noting:
    """Runs an operator, and notes what comes out of it: code after it may fail on some of that."""

    def __init__(self, phase: Phase):
        self._phase = phase
        self.results: DataFrame | None = None

    def __call__(self, stage: Stage) -> DataFrame:
        """Return what comes out of the operator."""
        self.results = self._phase(stage)
        return self.results


def _frame(member: NodeRun, each: Declaration, start: Position, end: Position) -> DataFrame:
    if each.name != member.shape.table:
        return member.inputs.batch(each, str(start), end)
    rows = keyed_results.newest(member.inputs.table(each, start, end), each.key)
    return member.inputs.frame(each, keyed_results.living(rows))


def _late(look: Inspection, member: NodeRun, batch: int) -> DataFrame | None:
    """Return the rows that the node's operator has judged to be late, up to a batch."""
    topic = look.late_topic(member.node)
    if member.stage is None or topic not in {each.name for each in look.log.topics()}:
        return None
    producer = producer_of(topic, look.version(member.node.name))
    found = _before(look, topic, batch, producer)
    if not found.num_rows:  # those of another version may have other columns
        return None
    names = member.stage.schema.names
    if not set(names) <= set(found.column_names):
        raise PipelineError(
            f"{member.node.title} has changed: the columns that go into its operator",
            detail=f'topic "{topic}", of what came too late for it, has not all of them',
            hint=f"{member.node.recompute_hint}, or take the change back",
            location=member.node.location,
        )
    return frame(look.spark, found.select(names).cast(member.stage.schema))


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


def compared(node: Declaration, expected: Rows, stored: Rows, schema: pa.Schema) -> Verdict:
    """Compare rows that a node should have with those that it has, by its key."""
    fields = [schema.field(name) for name in node.key]
    (wanted, twice), (found, again) = (_by_key(rows, fields) for rows in (expected, stored))
    both = [(wanted[key], found[key]) for key in wanted if key in found]
    different = tuple((a, b) for a, b in both if frozen(a, schema) != frozen(b, schema))
    missing = tuple(row for key, row in wanted.items() if key not in found)
    extra = tuple(row for key, row in found.items() if key not in wanted)
    return Verdict(node.name, len(both) - len(different), (*missing, *twice), (*extra, *again), different)


def _by_key(rows: Rows, key: Sequence[pa.Field]) -> tuple[dict[Hashable, Row], list[Row]]:
    """Return rows by their key, and those whose key another one has: no table by key can hold both."""
    known: dict[Hashable, Row] = {}
    again = [row for row in rows if known.setdefault(frozen(row, key), row) is not row]
    return known, again


def _text(row: Row) -> str:
    return "(" + ", ".join(f"{name}={value}" for name, value in row.items()) + ")"
