"""A Spark query that one or more nodes share.

Spark plans each micro-batch over all their inputs and stores where it ends; then each node does its
part, one after the other. So twenty views cost one query, and each topic is read once. A node on
which Spark's own stateful operators run has a query of its own, whose plan is the node's.

Invariant: Spark counts a micro-batch as done only after every node has committed its part.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from headwater.engine import applying, checkpoint, failures
from headwater.engine.applying import Capturing
from headwater.engine.calling import call
from headwater.engine.inputs import LIMIT, Inputs
from headwater.engine.member import Member
from headwater.engine.slice import Slice
from headwater.errors import Fenced, HeadwaterError, InputLost, SinkRefused, SinkUnavailable
from headwater.log import Position
from headwater.node import Declaration
from headwater.sinks import crash

ATTEMPTS = 6
"""Failures in a row, without a batch in between, after which a query counts as broken."""
LEAST = 20_000
"""Rows of a topic that a micro-batch may take, however many nodes share it."""


class Query:
    """Runs nodes, together."""

    def __init__(self, checkpoint: Path, inputs: Inputs):
        self.checkpoint = checkpoint
        self.members: dict[str, Member] = {}
        self._inputs = inputs
        self.spark: StreamingQuery | None = None
        self.failed = 0
        self.batches = 0
        """Batches that were done when it failed last."""
        self.again = 0.0
        """When it may start again, by the monotonic clock."""
        self.error: HeadwaterError | None = None
        """Why it stopped last."""
        self.done = 0
        """Micro-batches done in this run."""

    @property
    def broken(self) -> bool:
        """Whether it is not tried again: a target that cannot be reached is waited for, however long."""
        error = self.error
        away = isinstance(error, SinkUnavailable) and not isinstance(error, SinkRefused)
        final = isinstance(error, Fenced | InputLost)
        return final or (error is not None and self.failed >= ATTEMPTS and not away)

    def begin(self, places: Mapping[str, Position]) -> None:
        """Write down where the inputs begin, at the first start."""
        checkpoint.begin(self.checkpoint, dict(sorted(places.items())))

    def start(self) -> StreamingQuery:
        """Start, when every member has begun."""
        writer = self._stream().writeStream.foreachBatch(self._process)
        self.spark = writer.option("checkpointLocation", str(self.checkpoint.resolve())).start()
        return self.spark

    def passed(self, places: Mapping[str, Position]) -> bool:
        """Tell whether places in inputs are behind it, or it cannot get there because it has failed."""
        done = checkpoint.last_done(self.checkpoint)
        reached = checkpoint.reached(self.checkpoint, done)
        wanted = {name: at for name, at in places.items() if name in self._upstreams()}
        return self.spark is None or all(
            reached.inputs[name].position.passed(at) for name, at in wanted.items()
        )

    def stop(self) -> None:
        """End, if it is running."""
        if self.spark is not None and self.spark.isActive:
            self.spark.stop()
        self.spark = None

    def _upstreams(self) -> dict[str, Declaration]:
        """Return the inputs of all members."""
        return {name: each for member in self.members.values() for name, each in member.upstreams.items()}

    def _stream(self) -> DataFrame:
        begin = checkpoint.begun(self.checkpoint)
        if self.own is not None:
            return _own_plan(self.own, begin)
        return self._inputs.plan(self._upstreams(), begin, max(LIMIT // max(len(self.members), 1), LEAST))

    @property
    def own(self) -> Member | None:
        """The only member, if Spark's own stateful operators run on it."""
        return next((member for member in self.members.values() if member.shape.own), None)

    def _process(self, rows: DataFrame, number: int) -> None:
        before = checkpoint.reached(self.checkpoint, number - 1)
        slice = Slice(before, checkpoint.reached(self.checkpoint, number))
        crash.point("query: planned")
        for member in self.members.values():
            _try(member, number, slice, rows if member.shape.own else None)
        failed = next((member.error for member in self.members.values() if member.error), None)
        if failed is not None:
            raise failed
        self.done += 1


def _try(member: Member, number: int, slice: Slice, given: DataFrame | None) -> None:
    """Let a member do its part; what fails there keeps no other from doing its own."""
    try:
        member.process(number, slice, given)
    except HeadwaterError as error:
        member.error = error
    except Exception as error:
        member.error = failures.of(member.node, error)


def _own_plan(member: Member, begin: Mapping[str, Position]) -> DataFrame:
    capturing = Capturing()
    with applying.during(capturing):
        rows = call(member.node, member.inputs.streams(member.upstreams, begin))
    return rows if capturing.stage is None else capturing.stage.rows
