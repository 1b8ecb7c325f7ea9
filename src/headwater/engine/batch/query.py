"""A Spark query that one or more nodes share.

Spark plans each micro-batch over all their inputs and stores where it ends; then each node does its
part, some of them side by side. So twenty views cost one query, and each topic is read once. A node whose
code fails is detached, so that the others need not wait while it looks for the records to blame.

Invariant: Spark counts a micro-batch as done only after every node has committed its part, or was
detached with a checkpoint of its own, in which it is not done; and no node begins its part before the plan
is durable.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from pyspark import inheritable_thread_target
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from headwater.engine.batch.failing_records import CodeFailed
from headwater.engine.batch.inputs import Inputs
from headwater.engine.batch.micro_batch import MicroBatch
from headwater.engine.batch.node_run import NodeRun
from headwater.engine.batch.retry import Retry
from headwater.engine.failure import failures
from headwater.engine.home import checkpoint, node_progress
from headwater.engine.home.checkpoint_recovery import recover
from headwater.engine.source.planner_process import PlannerProcess
from headwater.errors import HeadwaterError
from headwater.log import Position
from headwater.pipeline.declaration import Declaration
from headwater.sinks import crash

SIDE_BY_SIDE = 4
"""Nodes that are computed at the same time, where there are cores for them."""


class Query:
    """Runs nodes, together."""

    def __init__(
        self,
        checkpoint: Path,
        inputs: Inputs,
        detach: Callable[[str], Path],
        publish: Callable[[Path], None],
    ):
        """``publish`` puts a folder where it outlives the machine, if the home is not on a disk."""
        self.checkpoint = checkpoint
        self.node_runs: dict[str, NodeRun] = {}
        """Replaced, never changed, while it runs: others look at it meanwhile."""
        self.detached: list[tuple[str, Path]] = []
        """Nodes that were detached while it ran, each with the checkpoint that it goes on from."""
        self._inputs, self._detach, self._publish = inputs, detach, publish
        self.spark: StreamingQuery | None = None
        self._planner: PlannerProcess | None = None
        self.retry = Retry()
        self.done = 0
        """Micro-batches done in this run."""
        self._offsets_synced = self._stopping = False
        self.unmergeable = False
        """Whether it is to go on by itself, as it could not be brought to the offsets of others."""

    @property
    def error(self) -> HeadwaterError | None:
        """Why it stopped last; None once it goes on."""
        return self.retry.error

    @property
    def broken(self) -> bool:
        """Whether it is not retried: a log or target that is away is waited for, however long."""
        return self.retry.is_given_up

    @property
    def has_progressed(self) -> bool:
        """Whether it has done a micro-batch since it failed last, or in this run if it has not failed."""
        return self.retry.has_progressed(self.done)

    def back_off(self, error: HeadwaterError) -> None:
        """Wait before the next start, longer with each failure in a row."""
        self.retry.back_off(error, self.done)

    def begin(self, start: Mapping[str, Position]) -> None:
        """Write down where the inputs begin, at the first start; make good what a power loss has left."""
        checkpoint.write_start(self.checkpoint, dict(sorted(start.items())))
        recover(self.checkpoint)

    def prepare(self) -> None:
        """Start the process that plans for it, if it has one, beside what else there is to do first."""
        if self._planner is None:
            self._planner = self._inputs.start_planner()

    def start(self, until: Mapping[str, Position] | None = None) -> StreamingQuery:
        """Start, when every node has begun; no further than positions in some inputs, if any are given."""
        self._offsets_synced = self._stopping = False
        self.prepare()
        writer = self._stream(until).writeStream.foreachBatch(self._process)
        self.spark = writer.option("checkpointLocation", str(self.checkpoint.resolve())).start()
        return self.spark

    def lag(self) -> int:
        """Return how many records its inputs have that it has not processed."""
        ends = {name: self._inputs.resolve(each, "latest") for name, each in self.upstreams.items()}
        done = self._processed()
        return sum(
            max(0, end - done[name].offsets.get(partition, 0))
            for name, position in ends.items()
            for partition, end in position.offsets.items()
        )

    def has_passed(self, positions: Mapping[str, Position]) -> bool:
        """Tell whether positions in inputs are behind it, or it cannot get there because it has failed."""
        if self.spark is None:
            return True
        done = self._processed()
        passed = all(done[name].passed(at) for name, at in positions.items() if name in self.upstreams)
        return passed and not any(map(_has_missed, self.node_runs.values()))

    def stop(self) -> None:
        """End, if it is running."""
        self._stopping = True
        spark = self.spark  # another thread may stop it too
        if spark is not None and spark.isActive:
            spark.stop()
        self.spark = None
        planner, self._planner = self._planner, None
        if planner is not None:
            planner.close()

    @property
    def upstreams(self) -> dict[str, Declaration]:
        """The inputs of all nodes."""
        return {
            name: upstream
            for node_run in self.node_runs.values()
            for name, upstream in node_run.upstreams.items()
        }

    def _processed(self) -> dict[str, Position]:
        """Return how far it has got in its inputs."""
        progress = checkpoint.input_progress(self.checkpoint, checkpoint.last_done(self.checkpoint))
        return {name: each.position for name, each in progress.inputs.items()}

    def _stream(self, until: Mapping[str, Position] | None) -> DataFrame:
        start = checkpoint.read_start(self.checkpoint)
        inputs = self._inputs.planned(self.upstreams, start, len(self.node_runs), until)
        if self._planner is not None:
            at = {**start, **self._processed()}
            self._planner.plan(inputs, {name: str(at[name]) for name in inputs})
        return self._inputs.plan(inputs, self._planner)

    def _process(self, rows: DataFrame, number: int) -> None:
        checkpoint.sync_offsets(self.checkpoint, number, first=not self._offsets_synced)
        self._offsets_synced = True
        self._publish_plan()
        before, after = (checkpoint.input_progress(self.checkpoint, end) for end in (number - 1, number))
        micro_batch = MicroBatch(before, after)
        crash.point("query: planned")
        self._compute(number, micro_batch, rows.sparkSession)
        error = next((node_run.error for node_run in self.node_runs.values() if node_run.error), None)
        if error is not None:
            raise error
        done = {node_run.home: node_run.done for node_run in self.node_runs.values()}
        node_progress.write(self.checkpoint, done)
        crash.point("query: noted")
        self.done += 1
        self.retry.clear()

    def _publish_plan(self) -> None:
        """Put the plan where it outlives the machine, with what was noted since the last one."""
        try:
            self._publish(self.checkpoint)
        except HeadwaterError as error:  # which Spark would pass on as text
            for node_run in self.node_runs.values():
                node_run.error = error
            raise

    def _compute(self, number: int, micro_batch: MicroBatch, session: SparkSession) -> None:
        """Let every node do its part; those whose code fails are detached, if there are others."""
        node_runs, compute = list(self.node_runs.values()), partial(self._side_by_side, session, micro_batch)
        compute(
            partial(_try, number, micro_batch, lambda: len(node_runs) == 1 and not self._stopping), node_runs
        )
        if self._stopping:  # Spark ends the jobs of a query that is stopped: that is no code's fault
            return
        failing = [name for name, each in self.node_runs.items() if isinstance(each.error, CodeFailed)]
        if len(failing) == len(self.node_runs):
            compute(partial(_try, number, micro_batch, lambda: not self._stopping), node_runs)
            return
        for name in failing:
            self.detached.append((name, self._detach(name)))
            self.node_runs = {other: self.node_runs[other] for other in self.node_runs if other != name}
            crash.point("query: detached")

    def _side_by_side(
        self,
        session: SparkSession,
        micro_batch: MicroBatch,
        compute: Callable[[NodeRun], None],
        node_runs: list[NodeRun],
    ) -> None:
        """Call a function with every node, with as many at the same time as there are cores for.

        Those that the driver computes come one after the other, as they would be in each other's way.
        """
        on_spark = [[node_run] for node_run in node_runs if node_run.needs_spark(micro_batch)]
        groups = [*on_spark, [node_run for node_run in node_runs if not node_run.needs_spark(micro_batch)]]
        with ThreadPoolExecutor(min(len(groups), self._inputs.cores, SIDE_BY_SIDE)) as pool:
            # Spark ends the jobs of a query that is stopped by what its thread hands on.
            list(pool.map(inheritable_thread_target(session)(lambda group: [*map(compute, group)]), groups))


def _try(number: int, micro_batch: MicroBatch, may_bisect: Callable[[], bool], node_run: NodeRun) -> None:
    """Let a node do its part; what fails there keeps no other from doing its own."""
    try:
        node_run.error = None
        node_run.process_and_commit(number, micro_batch, may_bisect=may_bisect)
    except HeadwaterError as error:
        node_run.error = error
    except (Exception, SystemExit) as error:  # a fold, or a function that a sink calls, may end the program
        node_run.error = failures.error_from_exception(node_run.node, error)


def _has_missed(node_run: NodeRun) -> bool:
    """Tell whether its query has done what a node, by its own account, has not."""
    return node_progress.has_missed(
        node_progress.read(node_run.home), node_run.checkpoint, node_run.upstreams
    )
