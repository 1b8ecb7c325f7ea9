"""A Spark query that one or more nodes share.

Spark plans each micro-batch over all their inputs and stores where it ends; then each node does its
part, some of them side by side. So twenty views cost one query, and each topic is read once. A node whose
code fails leaves, so that the others need not wait while it looks for the records to blame.

Invariant: Spark counts a micro-batch as done only after every node has committed its part, or has left with
a checkpoint of its own, in which it is not done; and no node begins its part before the plan is durable.
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
from headwater.engine.failure import failures
from headwater.engine.home import checkpoint, node_progress
from headwater.engine.home.recovery import recover
from headwater.errors import Fenced, HeadwaterError, InputLost, is_transient
from headwater.log import Position
from headwater.pipeline.declaration import Declaration
from headwater.sinks import crash

SIDE_BY_SIDE = 4
"""Nodes that are computed at the same time, where there are cores for them."""
ATTEMPTS = 6
"""Failures in a row, without a batch in between, after which a query counts as broken."""


class Query:
    """Runs nodes, together."""

    def __init__(self, checkpoint: Path, inputs: Inputs, leave: Callable[[str], Path]):
        self.checkpoint = checkpoint
        self.node_runs: dict[str, NodeRun] = {}
        """Replaced, never changed, while it runs: others look at it meanwhile."""
        self.left: list[tuple[str, Path]] = []
        """Nodes that have left while it ran, each with the checkpoint that it goes on from."""
        self._inputs, self._leave = inputs, leave
        self.spark: StreamingQuery | None = None
        self.failed = 0
        self.faults = 0
        """Failures that waiting does not mend, since the last batch."""
        self.batches = 0
        """Batches that were done when it failed last."""
        self.again = 0.0
        """When it may start again, by the monotonic clock."""
        self.error: HeadwaterError | None = None
        """Why it stopped last."""
        self.done = 0
        """Micro-batches done in this run."""
        self._secured = self._stopping = False
        self.apart = False
        """Whether it is to go on by itself, as it could not be brought to where others are."""

    @property
    def broken(self) -> bool:
        """Whether it is not tried again: a log or target that is away is waited for, however long."""
        error = self.error
        final = isinstance(error, Fenced | InputLost)
        return final or (error is not None and self.faults >= ATTEMPTS and not is_transient(error))

    def begin(self, places: Mapping[str, Position]) -> None:
        """Write down where the inputs begin, at the first start; make good what a power loss has left."""
        checkpoint.begin(self.checkpoint, dict(sorted(places.items())))
        recover(self.checkpoint)

    def start(self, until: Mapping[str, Position] | None = None) -> StreamingQuery:
        """Start, when every node has begun; no further than places in some inputs, if any are given."""
        self._secured = self._stopping = False
        writer = self._stream(until).writeStream.foreachBatch(self._process)
        self.spark = writer.option("checkpointLocation", str(self.checkpoint.resolve())).start()
        return self.spark

    def passed(self, places: Mapping[str, Position]) -> bool:
        """Tell whether places in inputs are behind it, or it cannot get there because it has failed."""
        if self.spark is None:
            return True
        reached = checkpoint.reached(self.checkpoint, checkpoint.last_done(self.checkpoint))
        wanted = {name: at for name, at in places.items() if name in self.upstreams}
        there = all(reached.inputs[name].position.passed(at) for name, at in wanted.items())
        return there and not any(map(_has_missed, self.node_runs.values()))

    def stop(self) -> None:
        """End, if it is running."""
        self._stopping = True
        if self.spark is not None and self.spark.isActive:
            self.spark.stop()
        self.spark = None

    @property
    def upstreams(self) -> dict[str, Declaration]:
        """The inputs of all nodes."""
        return {
            name: each for node_run in self.node_runs.values() for name, each in node_run.upstreams.items()
        }

    def _stream(self, until: Mapping[str, Position] | None) -> DataFrame:
        begin = checkpoint.begun(self.checkpoint)
        return self._inputs.plan(self.upstreams, begin, len(self.node_runs), until)

    def _process(self, rows: DataFrame, number: int) -> None:
        checkpoint.secure(self.checkpoint, number, first=not self._secured)
        self._secured = True
        before = checkpoint.reached(self.checkpoint, number - 1)
        micro_batch = MicroBatch(before, checkpoint.reached(self.checkpoint, number))
        crash.point("query: planned")
        self._compute(number, micro_batch, rows.sparkSession)
        failed = next((node_run.error for node_run in self.node_runs.values() if node_run.error), None)
        if failed is not None:
            raise failed
        node_progress.write(self.checkpoint, {each.home: each.done for each in self.node_runs.values()})
        crash.point("query: noted")
        self.done += 1
        self.error = None  # it goes on

    def _compute(self, number: int, micro_batch: MicroBatch, session: SparkSession) -> None:
        """Let every node do its part; those whose code fails leave the others, if there are any."""
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
            self.left.append((name, self._leave(name)))
            self.node_runs = {each: node_run for each, node_run in self.node_runs.items() if each != name}
            crash.point("query: left")

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
        asking = [[node_run] for node_run in node_runs if node_run.needs_spark(micro_batch)]
        groups = [*asking, [node_run for node_run in node_runs if not node_run.needs_spark(micro_batch)]]
        with ThreadPoolExecutor(min(len(groups), self._inputs.cores, SIDE_BY_SIDE)) as pool:
            # Spark ends the jobs of a query that is stopped by what its thread hands on.
            list(pool.map(inheritable_thread_target(session)(lambda some: [*map(compute, some)]), groups))


def _try(number: int, micro_batch: MicroBatch, search: Callable[[], bool], node_run: NodeRun) -> None:
    """Let a node do its part; what fails there keeps no other from doing its own."""
    try:
        node_run.error = None
        node_run.process(number, micro_batch, search=search)
    except HeadwaterError as error:
        node_run.error = error
    except (Exception, SystemExit) as error:  # a fold, or a function that a sink calls, may end the program
        node_run.error = failures.error_from_exception(node_run.node, error)


def _has_missed(node_run: NodeRun) -> bool:
    """Tell whether its query has done what a node, by its own account, has not."""
    return node_progress.has_missed(
        node_progress.read(node_run.home), node_run.checkpoint, node_run.upstreams
    )
