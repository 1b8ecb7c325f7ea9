"""One node of a query: its part of a micro-batch, from the records to the commit.

``node_compute.py`` computes it. Then, in this order: late rows go to their side topic, the states are noted,
rejected rows go to the dead-letter topic, and the sink commits the rows with the number of the micro-batch
and its positions. Each leaves out what it has, so a micro-batch that is repeated after a crash changes
nothing.

Invariant: what a node does in a micro-batch depends on the records and its state before it alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from headwater.engine.batch import failing_records, resume_checks
from headwater.engine.batch.failing_records import CodeFailed, FailedOnRecords
from headwater.engine.batch.inputs import Inputs
from headwater.engine.batch.micro_batch import MicroBatch
from headwater.engine.batch.node_compute import NodeCompute, NodeResult
from headwater.engine.batch.node_counts import NodeCounts
from headwater.engine.failure import failures
from headwater.engine.failure.dead_letter_writer import DeadLetterWriter
from headwater.engine.failure.rejected_row import rejected_rows
from headwater.engine.home import checkpoint, node_progress
from headwater.engine.home.accounting import Accounting
from headwater.engine.home.checkpoint import InputProgress
from headwater.engine.home.node_progress import NodeProgress
from headwater.engine.plan import keyed_results
from headwater.engine.plan.node_plan import NodePlan
from headwater.engine.plan.phases import Stage
from headwater.engine.stage.bucket_step import StepContext
from headwater.engine.state.rescale import Report, Rescaling
from headwater.engine.state.state_manifests import StateManifests
from headwater.engine.stored_home import state_files
from headwater.errors import HeadwaterError, UnreadableRecord, UsageError
from headwater.log import Position
from headwater.operators.event_time import NEVER
from headwater.operators.memory.slots import SLOTS
from headwater.operators.operator import rejected
from headwater.pipeline.node import Node
from headwater.sinks import crash
from headwater.sinks.sink import Batch, Sink
from headwater.stores import disk


class NodeRun:
    """A node, as part of the query that runs it."""

    def __init__(self, plan: NodePlan, inputs: Inputs, home: Path, store: str | None = None):
        """``store`` is the address of the pipeline's home, if that is in an object store."""
        self.node, self.plan, self.inputs = plan.node, plan, inputs
        self.upstreams, self._names = plan.upstreams, list(plan.upstreams)
        self.home = home
        self.checkpoint = home / "checkpoint"
        self.counts = NodeCounts()
        self.error: HeadwaterError | None = None
        """Why it failed, if it has since it began."""
        self._store = store
        self.done = NodeProgress()
        """What it has committed; its query notes it when all nodes have."""
        self._sink: Sink | None = None
        self._late_sink: Sink | None = None
        self._dead_letters: DeadLetterWriter | None = None

    @property
    def schema(self) -> pa.Schema:
        """The columns that are stored: all but the one that marks deletions."""
        return self.plan.stored

    @property
    def stage(self) -> Stage | None:
        """What is stateful in the node."""
        return self.plan.stage

    def begin(self, sink: Sink, late: Callable[[pa.Schema], Sink], dead_letters: DeadLetterWriter) -> None:
        """Begin, taking over from any other runner."""
        self.close()
        self._sink, self._late, self._dead_letters, self.error = sink, late, dead_letters, None
        committed = sink.begin()
        self.done = node_progress.read(self.home)
        resume_checks.check_checkpoint(self.node, max(committed, self.done.batch), self.checkpoint)
        self._resume(sink)
        resume_checks.check_query(self.node, self.done, self.checkpoint, self._names)
        self.check_inputs()
        if self.stage is not None:
            self._states = StateManifests(state_files(self.home, self._store))
            self._states.begin(_default_buckets(self.stage))

    def rescale(self, count: int, report: Report) -> int:
        """Spread the state over another number of buckets; return over how many it was.

        To be called where no query of the node runs, and no micro-batch has been begun and not been done:
        that one is repeated in the buckets in which it was tried.
        """
        stage, states = self._rescalable(count), StateManifests(state_files(self.home, self._store))
        states.begin()
        following = states.last_batch + 1
        if not following:
            raise _without_state(self.node)
        before = states.count_before(following)
        if count != before:
            rescaling = Rescaling(stage.operator, stage.schema, states.files)
            buckets = rescaling.run(states.before(following), count, report)
            crash.point("rescale: written")
            states.rescale(count, buckets)
            crash.point("rescale: committed")
        return before

    def _rescalable(self, count: int) -> Stage:
        """Return the operator, or refuse a node that cannot be spread over a number of buckets now."""
        if not 1 <= count <= SLOTS:
            raise UsageError(
                f"{self.node.title} cannot have {count} buckets", hint=f"a number from 1 to {SLOTS}"
            )
        if self.stage is None:
            raise UsageError(
                f"{self.node.title} has no state",
                detail="it has no operator: each row is computed by itself",
                hint="name a node with an operator",
            )
        planned, done = checkpoint.last_batch(self.checkpoint), checkpoint.last_done(self.checkpoint)
        if planned < 0:
            raise _without_state(self.node)
        if planned != done:
            raise HeadwaterError(
                f"{self.node.title} is in the middle of batch {planned}",
                detail="it is repeated at the next start, in the buckets in which it was begun",
                hint="let it be done: headwater run FILE --until-caught-up, then rescale",
            )
        return self.stage

    def _resume(self, sink: Sink) -> None:
        """Resume the sink; its first receipt is noted before its first batch, which may repeat."""
        lost = sink.resume(self.done.receipt)
        if self.done.batch >= 0:
            resume_checks.check_sink(self.node, lost)
        if not self.done.receipt:
            self.done = replace(self.done, receipt=sink.receipt())
            node_progress.write(self.checkpoint, {self.home: self.done})

    def check_inputs(self) -> None:
        """Refuse to go on where the inputs no longer hold what comes next."""
        begun = checkpoint.read_node_start(self.home)
        stands = [Position.parse(self.done.positions.get(name) or str(begun[name])) for name in self._names]
        self.inputs.check(self.node, stands)
        ends = (self.inputs.resolve(each, "latest") for each in self.upstreams.values())
        resume_checks.check_partitions(self.node, stands, ends)

    def close(self) -> None:
        """Release the connections and files of its sinks; what they have committed is durable already."""
        for sink in (self._sink, self._late_sink, self._dead_letters):
            if sink is not None:
                with suppress(HeadwaterError):  # of a commit that has failed, and was raised then
                    sink.close()
        self._late_sink = None

    def process_and_commit(
        self, number: int, micro_batch: MicroBatch, *, may_bisect: Callable[[], bool]
    ) -> None:
        """Do a node's part of a micro-batch; ``may_bisect`` tells whether to look for records that fail."""
        before, after = self.restrict(micro_batch.before), self.restrict(micro_batch.after)
        if before == after:
            return
        resume_checks.check_partitions(self.node, before.positions, after.positions)
        started = time.perf_counter()
        computed = self._with_keys(self._computed(number, micro_batch, may_bisect))
        assert self._sink is not None and self._dead_letters is not None, "it has begun"
        rejected = rejected_rows(computed.rejected, self._commands)
        self._dead_letters.write(number, rejected)
        crash.point("query: computed")
        done = self.done.after(number, after, self._accounting(micro_batch, computed))
        watermark = self._output_watermark(done.watermark(number, after))
        fresh = self._sink.commit(Batch(number, computed.rows, after.positions, watermark))
        self.done = replace(done, receipt=self._sink.receipt())
        crash.point("query: committed")
        if any(row.source is not None for row in rejected):  # whoever computes this anew leaves them out
            self.inputs = self.inputs.without(self._dead_letters.skips())
        if fresh:  # what is repeated has been counted
            self._count(micro_batch, computed)
        self.counts.reached = after
        self.counts.seconds, self.counts.at = time.perf_counter() - started, time.time()

    def needs_spark(self, micro_batch: MicroBatch) -> bool:
        """Tell whether a micro-batch has code of the user's to run, or so much that workers compute it."""
        return NodeCompute(self.plan, self.inputs, micro_batch).needs_spark

    def restrict(self, reached: InputProgress) -> InputProgress:
        """Return how far a query has come in the inputs of the node."""
        return reached.of(self.upstreams)

    @property
    def _commands(self) -> str | None:
        """The topic of commands that the node decides, if it is a handler's: it reads nothing else."""
        if not self.node.code.fixed_partitions:
            return None
        [commands] = self.upstreams.values()
        return str(getattr(commands, "topic", ""))

    def _with_keys(self, computed: NodeResult) -> NodeResult:
        """Reject rows that have no key, if any are rejected; what stores them by key refuses them."""
        key = self.node.replacement_key
        if self.node.on_error != "dead_letter" or not set(key) <= set(computed.rows.column_names):
            return computed
        keyed, unkeyed = keyed_results.split_null_keys(computed.rows, key)
        if not unkeyed.num_rows:
            return computed
        why = f"a null in the key ({', '.join(key)})"
        bad = rejected(unkeyed, [why] * unkeyed.num_rows)
        return replace(computed, rows=keyed, rejected=[*computed.rejected, bad])

    def _count(self, micro_batch: MicroBatch, computed: NodeResult) -> None:
        if self.stage is None:
            self.counts.rows += micro_batch.size(self._names)
        for note in computed.notes:  # an operator counts its rows itself
            self.counts.note(note)
        self.counts.batches += 1
        self.counts.out += computed.rows.num_rows

    def _accounting(self, micro_batch: MicroBatch, computed: NodeResult) -> Accounting:
        """Return what became of the records of a micro-batch: the same when it is repeated."""
        aside, out = micro_batch.set_aside(self.inputs, self._names), computed.rows.num_rows
        if self.stage is None:
            rows = micro_batch.size(self._names)
            # A result without a key stands for a row; where one row gives many, at most as many as there are.
            unkeyed = min(sum(table.num_rows for table in computed.rejected), rows - aside)
            return Accounting(rows, dead=aside + unkeyed, out=out)
        names = ("rows", "late", "duplicates", "dead")
        counted = {name: sum(note[name] for note in computed.notes) for name in names}
        left_out = Accounting(rows=aside, dead=aside)  # which never come to the operator
        return Accounting(**counted, out=out).plus(left_out)

    def _computed(self, number: int, micro_batch: MicroBatch, may_bisect: Callable[[], bool]) -> NodeResult:
        """Compute, without the records that are to blame where code fails; their states are noted."""
        while True:
            try:
                return self._attempt(number, micro_batch)
            except Exception as error:
                if isinstance(error, HeadwaterError) and not isinstance(error, UnreadableRecord):
                    raise
                if disk.is_full(error):  # of no record
                    raise failures.error_from_exception(self.node, error) from error
                self.check_inputs()  # what is gone is no record's fault
                if not may_bisect():
                    raise CodeFailed(f"{self.node.title} failed", location=self.node.location) from error
                self._reject_records(number, micro_batch, error)

    def _attempt(self, number: int, micro_batch: MicroBatch) -> NodeResult:
        compute = NodeCompute(self.plan, self.inputs, micro_batch)
        if self.stage is None:
            return compute.without_operator()
        computed = compute.with_operator(self.stage, self._step_context(self.stage, number, micro_batch))
        if computed.late is not None and computed.late.num_rows:
            self._late_rows(self.stage.late).commit(Batch(number, computed.late))
        crash.point("query: stepped")
        self._states.commit(number, dict(computed.buckets))
        return computed

    def _step_context(self, stage: Stage, number: int, micro_batch: MicroBatch) -> StepContext:
        return StepContext(
            str(self.home),
            stage.operator,
            stage.schema,
            self._states.files,
            before=_or_never(self.done.watermark(number - 1, self.restrict(micro_batch.before))),
            now=_or_never(self.done.watermark(number, self.restrict(micro_batch.after))),
            count=self._states.count_before(number),
            buckets=self._states.before(number),
        )

    def _reject_records(self, number: int, micro_batch: MicroBatch, error: Exception) -> None:
        """Leave out the records from now on that are to blame for an error; or raise, naming one."""
        records = failing_records.find(self.plan, self.inputs, micro_batch)
        if not records:  # it fails on no record alone
            raise failures.error_from_exception(self.node, error) from error
        if self.node.on_error != "dead_letter":
            raise FailedOnRecords(self.node, records) from error
        assert self._dead_letters is not None, "it has begun"
        self._dead_letters.write(number, records)
        self.inputs = self.inputs.without(self._dead_letters.skips())
        crash.point("query: set aside")

    def _late_rows(self, schema: pa.Schema) -> Sink:
        if self._late_sink is None:
            self._late_sink = self._late(schema)
            self._late_sink.begin()
        return self._late_sink

    def _output_watermark(self, watermark: int | None) -> int | None:
        """Return the time before which this node emits nothing any more."""
        if watermark is None or self.stage is None:
            return watermark
        return self.stage.operator.output_watermark(watermark)


def _without_state(node: Node) -> UsageError:
    hint = "run the pipeline first; then its number of buckets can be changed"
    return UsageError(f"{node.title} has no state yet", hint=hint)


def _default_buckets(stage: Stage) -> int:
    """Return over how many buckets a new state is spread: each is a step of its own, and a task's at most."""
    return min(stage.rows.sparkSession.sparkContext.defaultParallelism, SLOTS)


def _or_never(watermark: int | None) -> int:
    return NEVER if watermark is None else watermark
