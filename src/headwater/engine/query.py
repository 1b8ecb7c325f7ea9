"""One node as one Spark query: from the log, through user code and an operator, into its sink.

A micro-batch's results are collected, and committed by the sink in one transaction with the batch's
number and positions. Late rows go to a topic of their own first; it leaves out what it has, so a
batch that is repeated after a crash changes nothing there either.

Invariant: Spark counts a batch as done only after the sink has committed it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from operator import itemgetter
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from headwater.engine import applying, blobs, checkpoint, clocked, culprits, failures, pruning, runtime
from headwater.engine.applying import Capturing, Stage, arrow_schema
from headwater.engine.calling import call, carry
from headwater.engine.checkpoint import Reached
from headwater.engine.inputs import Inputs
from headwater.errors import HeadwaterError, PipelineError
from headwater.log import Position
from headwater.node import Declaration, Node
from headwater.sinks import crash
from headwater.sinks.fitting import DELETED
from headwater.sinks.sink import Batch, Sink


@dataclass(frozen=True)
class Shape:
    """What a node turns out to be when its function is called over streams."""

    node: Node
    rows: DataFrame
    """What the function returns; behind an operator, no rows."""
    schema: pa.Schema
    event_time: str | None
    stage: Stage | None
    timed: bool
    """Whether an input tells the time."""
    start: str
    """Where it begins to read, if it has no checkpoint."""


@dataclass
class Counts:
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
    reached: Reached | None = None
    at: float = field(default_factory=time.time)


def shape(node: Node, upstreams: dict[str, Declaration], inputs: Inputs, start: str) -> Shape:
    """Call a node's function over streams, and see what it is."""
    carry(node)
    frames = inputs.streams(upstreams, start)
    stage, rows = _called(node, frames)
    used = pruning.used(stage.rows if stage else rows)
    if used:
        stage, rows = _called(node, inputs.streams(upstreams, start, used))
    timed = any(clocked.event_time_of(frame) for frame in frames.values())
    if stage is not None and rows.isStreaming:
        raise PipelineError(
            f"{node.title} uses an upstream after its operator, {stage.name}",
            detail="what comes after an operator sees its results only",
            hint="use the upstream before the operator, or make a stream of the operator's results",
            place=node.place,
        )
    event_time = node.event_time or clocked.event_time_of(rows)
    return Shape(node, rows, arrow_schema(rows), event_time, stage, timed, start)


def _called(node: Node, frames: dict[str, DataFrame]) -> tuple[Stage | None, DataFrame]:
    """Return what is stateful in a node over streams, and what its function returns."""
    capturing = Capturing()
    with applying.during(capturing):
        rows = call(node, frames)
    return capturing.stage, rows


class Query:
    """Runs a node."""

    def __init__(self, shape: Shape, upstreams: dict[str, Declaration], inputs: Inputs, home: Path):
        self.node, self.shape = shape.node, shape
        self.upstreams, self.inputs = upstreams, inputs
        self._home = home
        self.checkpoint = home / "checkpoint"
        self.counts = Counts()
        self.error: HeadwaterError | None = None
        """What went wrong last while results were committed."""
        self._late_sink: Sink | None = None

    @property
    def schema(self) -> pa.Schema:
        """The columns that are stored: all but the one that marks deletions."""
        return pa.schema([field for field in self.shape.schema if field.name != DELETED])

    @property
    def stage(self) -> Stage | None:
        """What is stateful in the node."""
        return self.shape.stage

    def start(self, sink: Sink, late: Callable[[pa.Schema], Sink]) -> StreamingQuery:
        """Begin, taking over from any other runner."""
        self._sink, self._late, self.error = sink, late, None
        _check_ahead(self.node, sink.begin(), self.checkpoint)
        writer = self._stream().writeStream.foreachBatch(self._commit)
        return writer.option("checkpointLocation", str(self.checkpoint.absolute())).start()

    def _stream(self) -> DataFrame:
        stage = self.shape.stage
        if stage is None:
            return self.shape.rows
        of = (stage.rows, stage.operator, stage.schema)
        return runtime.streamed(*of, str(self._home), self.shape.timed, applying.BUCKETS)

    def _commit(self, results: DataFrame, number: int) -> None:
        try:
            self._committed(results, number)
        except HeadwaterError as error:
            self.error = error  # Spark would tell of it in its own words only
            raise

    def _committed(self, results: DataFrame, number: int) -> None:
        started = time.perf_counter()
        reached = checkpoint.reached(self.checkpoint, number)
        crash.point("query: planned")
        rows = self._computed(results, number, reached)
        crash.point("query: computed")
        self._sink.commit(Batch(number, rows, reached.positions, self._promise(reached)))
        crash.point("query: committed")
        if self.shape.stage is None:  # an operator counts its rows itself
            self.counts.rows += self._taken(number, reached)
        self.counts.batches += 1
        self.counts.out += rows.num_rows
        self.counts.reached = reached
        self.counts.seconds, self.counts.at = time.perf_counter() - started, time.time()

    def _computed(self, results: DataFrame, number: int, reached: Reached) -> pa.Table:
        try:
            return self._plain(results) if self.shape.stage is None else self._stateful(results, number)
        except HeadwaterError:
            raise
        except Exception as error:
            first = self._begun(number)
            found = culprits.find(self.node, self.upstreams, self.inputs, first, list(reached.positions))
            if not found:  # it fails on no record alone
                raise failures.told(self.node, str(error)) from error
            raise culprits.Poisoned(self.node, found) from error

    def _taken(self, number: int, reached: Reached) -> int:
        """Return how many records a batch has read."""
        before = {each.topic: each.offsets for each in self._begun(number)}
        ends = [(before.get(each.topic, {}), each.offsets) for each in reached.positions]
        return sum(end - start.get(part, 0) for start, offsets in ends for part, end in offsets.items())

    def _begun(self, number: int) -> list[Position]:
        """Return where a batch begins."""
        if number > 0:
            return list(checkpoint.reached(self.checkpoint, number - 1).positions)
        return [self.inputs.resolve(each, self.shape.start) for each in self.upstreams.values()]

    def _plain(self, results: DataFrame) -> pa.Table:
        return results.toArrow().cast(self.shape.schema)

    def _stateful(self, results: DataFrame, number: int) -> pa.Table:
        """Take the tagged blobs apart: late rows to their topic, the others through the rest of user code."""
        stage = self.shape.stage
        assert stage is not None
        tagged: dict[str, list[bytes]] = {runtime.MAIN: [], runtime.LATE: [], runtime.NOTE: []}
        # In an order that a repeated batch has too: rows are numbered by it.
        for row in sorted(results.collect(), key=itemgetter(blobs.BUCKET)):
            tagged[row[blobs.TAG]].append(bytes(row[blobs.BLOB]))
        self._note(map(json.loads, tagged[runtime.NOTE]))
        if tagged[runtime.LATE]:
            rows = blobs.decode_all(tagged[runtime.LATE], stage.schema)
            self._late_rows(stage.schema).commit(Batch(number, rows))
        return self._rest(blobs.decode_all(tagged[runtime.MAIN], stage.output))

    def _late_rows(self, schema: pa.Schema) -> Sink:
        if self._late_sink is None:
            self._late_sink = self._late(schema)
            self._late_sink.begin()
        return self._late_sink

    def _rest(self, rows: pa.Table) -> pa.Table:
        """Return what user code makes of an operator's results."""
        if not rows.num_rows:
            return self.shape.schema.empty_table()
        stage = self.shape.stage
        assert stage is not None
        results = stage.rows.sparkSession.createDataFrame(rows)
        with applying.during(applying.finishing(results)):
            made = call(self.node, {name: self.inputs.empty(each) for name, each in self.upstreams.items()})
        return made.toArrow().cast(self.shape.schema)

    def _promise(self, reached: Reached) -> int | None:
        """Return the time before which this node emits nothing any more."""
        if reached.clock is None:
            return None
        stage = self.shape.stage
        return reached.clock if stage is None else stage.operator.promise(reached.watermark)

    def _note(self, notes: Any) -> None:
        counts = self.counts
        for note in notes:
            counts.rows += note["rows"]
            counts.late += note["late"]
            counts.duplicates += note["duplicates"]
            counts.hits += note["hits"]
            counts.loads += note["loads"]
            counts.read += note["read"]
            counts.states[note["bucket"]] = note["state"]


def _check_ahead(node: Node, committed: int, path: Path) -> None:
    """Refuse to go on from a checkpoint that knows less than the sink: its batches would be left out."""
    if committed > checkpoint.last_batch(path):
        raise PipelineError(
            f"the checkpoint of {node.title} is older than its results",
            detail=f'batch {committed} is committed, and "{path}" does not know it',
            hint=f"restore the checkpoint, or run `headwater rebuild {node.name}`",
            place=node.place,
        )
