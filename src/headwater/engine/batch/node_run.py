"""One node of a query: its part of a micro-batch, from the records to the commit.

Late rows go to a topic of their own first, then the states are noted, then the sink commits the
rows with the number of the micro-batch and its positions. Each leaves out what it has, so a
micro-batch that is repeated after a crash changes nothing.

Invariant: what a node does in a micro-batch depends on the records and its state before it alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from headwater.engine.batch import failing_records, packed_read
from headwater.engine.batch.failing_records import CodeFailed, RejectedRecords
from headwater.engine.batch.finishing import Finishing
from headwater.engine.batch.inputs import Inputs
from headwater.engine.batch.micro_batch import MicroBatch, is_few
from headwater.engine.failure import failures
from headwater.engine.failure.dead_letters import RejectedRecord, Skips, letters
from headwater.engine.home import checkpoint, node_progress
from headwater.engine.home.checkpoint import InputProgress
from headwater.engine.home.node_progress import NodeProgress
from headwater.engine.plan import keyed_results, phases
from headwater.engine.plan.phases import BUCKETS, Capturing, Stage
from headwater.engine.plan.shape import Shape
from headwater.engine.plan.user_code import call
from headwater.engine.stage import bucket_step, runtime
from headwater.engine.stage.bucket_step import StepContext
from headwater.engine.stage.runtime import Results
from headwater.engine.state.state_manifests import StateManifests
from headwater.errors import HeadwaterError, PipelineError
from headwater.log import Position
from headwater.operators.operator import NEVER, rejected
from headwater.pipeline.declaration import Declaration
from headwater.pipeline.node import Node
from headwater.sinks import crash
from headwater.sinks.sink import Batch, Sink
from headwater.stores import disk


@dataclass
class NodeCounts:
    """What a node has done so far, in this run."""

    batches: int = 0
    rows: int = 0
    out: int = 0
    late: int = 0
    duplicates: int = 0
    states: dict[int, int] = field(default_factory=dict)
    """Bytes of each bucket's state."""
    hits: int = 0
    loads: int = 0
    read: int = 0
    seconds: float = 0.0
    reached: InputProgress | None = None
    at: float = field(default_factory=time.time)

    def note(self, note: dict[str, Any]) -> None:
        """Take in what a bucket has told of its step."""
        self.rows += note["rows"]
        self.late += note["late"]
        self.duplicates += note["duplicates"]
        self.hits += note["hits"]
        self.loads += note["loads"]
        self.read += note["read"]
        self.states[note["bucket"]] = note["state"]


class NodeRun:
    """A node, as part of the query that runs it."""

    def __init__(self, shape: Shape, inputs: Inputs, home: Path):
        self.node, self.shape, self.inputs = shape.node, shape, inputs
        self.upstreams, self._names = shape.upstreams, list(shape.upstreams)
        self.home = home
        self.checkpoint = home / "checkpoint"
        self.counts = NodeCounts()
        self.error: HeadwaterError | None = None
        """Why it failed, if it has since it began."""
        self._states = StateManifests(home / "state")
        self._finishing = Finishing(shape, inputs)
        self.done = NodeProgress()
        """What it has committed; its query notes it when all nodes have."""
        self._sink: Sink | None = None
        self._late_sink: Sink | None = None
        self._dead_sink: Sink | None = None
        self._notes: list[dict[str, Any]] = []
        self._letters: list[pa.Table] = []
        """Rows that this micro-batch sets aside, each with what is wrong with it."""

    @property
    def schema(self) -> pa.Schema:
        """The columns that are stored: all but the one that marks deletions."""
        return self.shape.stored

    @property
    def stage(self) -> Stage | None:
        """What is stateful in the node."""
        return self.shape.stage

    def begin(
        self,
        sink: Sink,
        late: Callable[[pa.Schema], Sink],
        dead: Callable[[], Sink],
        reject: Callable[[Sequence[RejectedRecord]], Skips],
    ) -> None:
        """Begin, taking over from any other runner."""
        self.close()
        self._sink, self._late, self._dead, self.error = sink, late, dead, None
        self._reject = reject
        committed = sink.begin()
        self.done = node_progress.read(self.home)
        _check_ahead(self.node, max(committed, self.done.batch), self.checkpoint)
        _check_lost(self.node, sink.missing_since(self.done.receipt))
        _check_missed(self.node, self.done, self.checkpoint, self._names)
        self.check_inputs()
        if self.stage is not None:
            self._states.begin()

    def check_inputs(self) -> None:
        """Refuse to go on where the inputs no longer hold what comes next."""
        begun = checkpoint.read_node_start(self.home)
        stands = {name: self.done.positions.get(name) or str(begun[name]) for name in self._names}
        self.inputs.check(self.node, map(Position.parse, stands.values()))

    def close(self) -> None:
        """Release the connections and files of its sinks; what they have committed is durable already."""
        for sink in (self._sink, self._late_sink, self._dead_sink):
            if sink is not None:
                with suppress(HeadwaterError):  # of a commit that has failed, and was told
                    sink.close()
        self._late_sink = self._dead_sink = None

    def process(self, number: int, micro_batch: MicroBatch, *, search: Callable[[], bool]) -> None:
        """Do a node's part of a micro-batch; where its code fails, ``search`` tells whether to look why."""
        before, after = self.mine(micro_batch.before), self.mine(micro_batch.after)
        if before == after:
            return
        started = time.perf_counter()
        rows = self._keyed(self._computed(number, micro_batch, search))
        if self._letters:
            self._dead_rows().commit(Batch(number, letters(self._letters)))
        crash.point("query: computed")
        done = self.done.after(number, after)
        clock = self._promise(done.clock(number, after))
        assert self._sink is not None, "it has begun"
        fresh = self._sink.commit(Batch(number, rows, after.positions, clock))
        self.done = replace(done, receipt=self._sink.receipt())
        crash.point("query: committed")
        if fresh:  # what is repeated has been counted
            self._count(micro_batch, rows.num_rows)
        self.counts.reached = after
        self.counts.seconds, self.counts.at = time.perf_counter() - started, time.time()

    def asks_spark(self, micro_batch: MicroBatch) -> bool:
        """Tell whether a micro-batch has code of the user's to run, or so much that workers compute it."""
        own = self.shape.straight and (self.stage is None or self.shape.bare)
        return bool(micro_batch.size(self._names)) and not (own and micro_batch.is_small(self._names))

    def mine(self, reached: InputProgress) -> InputProgress:
        """Return how far a query has come in the inputs of the node."""
        return reached.of(self.upstreams)

    def _keyed(self, rows: pa.Table) -> pa.Table:
        """Set rows aside that cannot be kept by key, if any are set aside; what keeps them refuses them."""
        key = self.node.replacement_key
        if self.node.on_error != "dead_letter" or not set(key) <= set(rows.column_names):
            return rows
        kept, lost = keyed_results.without_key(rows, key)
        if lost.num_rows:
            why = f"a null in the key ({', '.join(key)})"
            self._letters = [*self._letters, rejected(lost, [why] * lost.num_rows)]
        return kept

    def _count(self, micro_batch: MicroBatch, out: int) -> None:
        if self.stage is None:
            self.counts.rows += micro_batch.size(self._names)
        for note in self._notes:  # an operator counts its rows itself
            self.counts.note(note)
        self.counts.batches += 1
        self.counts.out += out

    def _computed(self, number: int, micro_batch: MicroBatch, search: Callable[[], bool]) -> pa.Table:
        while True:
            self._letters = []
            try:
                if self.stage is None:
                    return self._plain(micro_batch)
                return self._stateful(self.stage, number, micro_batch)
            except HeadwaterError:
                raise
            except Exception as error:
                if disk.is_full(error):  # of no record
                    raise failures.of(self.node, error) from error
                self.check_inputs()  # what is gone is no record's fault
                if not search():
                    raise CodeFailed(f"{self.node.title} failed", location=self.node.location) from error
                self._set_aside(micro_batch, error)

    def _set_aside(self, micro_batch: MicroBatch, error: Exception) -> None:
        """Leave out the records from now on that are to blame for an error; or raise, naming one."""
        found = failing_records.find(self.shape, self.inputs, micro_batch)
        if not found:  # it fails on no record alone
            raise failures.of(self.node, error) from error
        if self.node.on_error != "dead_letter":
            raise RejectedRecords(self.node, found) from error
        self.inputs = self.inputs.without(self._reject(found))
        crash.point("query: set aside")

    def _plain(self, micro_batch: MicroBatch) -> pa.Table:
        if not micro_batch.size(self._names):
            return self.shape.schema.empty_table()
        if self.shape.table is not None:
            return self._of_table(micro_batch, self.upstreams[self.shape.table])
        if self.shape.straight and micro_batch.is_small(self._names):
            (rows,) = self._straight(micro_batch)
            return rows.cast(self.shape.schema)
        return self._called(self._frames(micro_batch), few=micro_batch.is_small(self._names))

    def _of_table(self, micro_batch: MicroBatch, table: Declaration) -> pa.Table:
        """Return what becomes of the rows that have changed; a micro-batch of them fits in the driver."""
        changed = keyed_results.newest(micro_batch.table(self.inputs, table), table.key)
        living = keyed_results.living(changed)
        if self.shape.straight:
            made = living.cast(self.shape.schema)
        else:
            made = self._called({table.name: self.inputs.frame(table, living)}, few=is_few(living.num_rows))
        return keyed_results.without_gone(self.node, made, changed)

    def _called(self, frames: dict[str, DataFrame], *, few: bool) -> pa.Table:
        """Return what a node without an operator makes of its upstreams."""
        made = self.shape.last.evaluated(frames) if few else None
        return call(self.node, frames).toArrow().cast(self.shape.schema) if made is None else made

    def _stateful(self, stage: Stage, number: int, micro_batch: MicroBatch) -> pa.Table:
        work = StepContext(
            str(self.home),
            stage.operator,
            stage.schema,
            str(self._states.home.absolute()),
            before=_or_never(self.done.clock(number - 1, self.mine(micro_batch.before))),
            now=_or_never(self.done.clock(number, self.mine(micro_batch.after))),
            buckets=self._states.before(number),
        )
        results = self._stepped(stage, work, micro_batch)
        self._notes = results.notes
        finished = self._finishing.finish(results.main)
        if results.late.num_rows:
            self._late_rows(stage.late).commit(Batch(number, results.late))
        self._letters = [*results.dead, *([] if finished.dead is None else [finished.dead])]
        crash.point("query: stepped")
        self._states.commit(number, results.buckets)
        return finished.made

    def _stepped(self, stage: Stage, work: StepContext, micro_batch: MicroBatch) -> Results:
        if micro_batch.is_small(self._names):
            taken = self._taken(stage, micro_batch)
            results = runtime.gathered(bucket_step.here(work, taken, BUCKETS), stage.late, stage.output)
            results.check(taken.num_rows)
            return results
        return runtime.spread(work, self._packed(stage, micro_batch), stage.output)

    def _packed(self, stage: Stage, micro_batch: MicroBatch) -> DataFrame:
        """Return the rows that go into the operator, on their way to its buckets."""
        if self.shape.straight:
            upstreams = [self.upstreams[name] for name in self.shape.straight]
            parts = [
                part
                for side, each in enumerate(upstreams)
                for part in micro_batch.parts(self.inputs, each, side)
            ]
            schemas = [self.inputs.schema(each) for each in upstreams]
            return packed_read.packed(stage.rows.sparkSession, parts, stage, schemas, BUCKETS)
        return runtime.packed(self._before(micro_batch), stage.operator, BUCKETS, tally=True)

    def _taken(self, stage: Stage, micro_batch: MicroBatch) -> pa.Table:
        """Return the few rows that go into the operator."""
        if not micro_batch.size(self._names):
            return stage.schema.empty_table()
        if self.shape.straight:
            return stage.taken(self._straight(micro_batch))
        frames = self._frames(micro_batch)
        sides = [made for side in self.shape.sides if (made := side.evaluated(frames)) is not None]
        if len(sides) == len(self.shape.sides):
            return stage.taken(sides)
        return self._before(micro_batch).toArrow().cast(stage.schema)

    def _straight(self, micro_batch: MicroBatch) -> list[pa.Table]:
        """Return the records of upstreams that no code comes before."""
        return [micro_batch.table(self.inputs, self.upstreams[name]) for name in self.shape.straight]

    def _before(self, micro_batch: MicroBatch) -> DataFrame:
        """Return what user code makes of the records, up to the operator."""
        capturing = Capturing()
        with phases.during(capturing):
            call(self.node, self._frames(micro_batch))
        assert capturing.stage is not None
        return capturing.stage.rows

    def _frames(self, micro_batch: MicroBatch) -> dict[str, DataFrame]:
        if micro_batch.is_small(self._names):
            return {name: micro_batch.frame(self.inputs, each) for name, each in self.upstreams.items()}
        used = self.shape.used
        return {name: micro_batch.part(self.inputs, each, used) for name, each in self.upstreams.items()}

    def _late_rows(self, schema: pa.Schema) -> Sink:
        if self._late_sink is None:
            self._late_sink = self._late(schema)
            self._late_sink.begin()
        return self._late_sink

    def _dead_rows(self) -> Sink:
        if self._dead_sink is None:
            self._dead_sink = self._dead()
            self._dead_sink.begin()
        return self._dead_sink

    def _promise(self, clock: int | None) -> int | None:
        """Return the time before which this node emits nothing any more."""
        return clock if clock is None or self.stage is None else self.stage.operator.output_watermark(clock)


def _or_never(clock: int | None) -> int:
    return NEVER if clock is None else clock


def _check_ahead(node: Node, committed: int, path: Path) -> None:
    """Refuse to go on from a checkpoint that knows less than the sink: its batches would be left out."""
    if committed > checkpoint.last_batch(path):
        raise PipelineError(
            f"the checkpoint of {node.title} is older than its results",
            detail=f'batch {committed} is committed, and "{path}" does not know it',
            hint=f"restore the checkpoint; or {node.recompute_hint}",
            location=node.location,
        )


def _check_missed(node: Node, done: NodeProgress, folder: Path, upstreams: list[str]) -> None:
    """Refuse to go on where the nodes that share the query have gone on without this one."""
    if node_progress.has_missed(done, folder, upstreams):
        raise PipelineError(
            f"{node.title} has missed some of its input",
            detail="the pipeline has run without it, and the query that it shares has gone on",
            hint=node.recompute_hint,
            location=node.location,
        )


def _check_lost(node: Node, lost: str | None) -> None:
    """Refuse to go on if a sink has lost what was committed: those batches never come again."""
    if lost is not None:
        raise PipelineError(
            f"{node.title} is older than its checkpoint",
            detail=f"{lost}: it was moved, emptied, or restored from a backup",
            hint=node.recompute_hint,
            location=node.location,
        )
