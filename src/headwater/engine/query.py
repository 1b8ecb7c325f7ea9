"""A Spark query that one or more nodes share.

Spark plans each micro-batch over all their inputs and stores where it ends; then each node does its
part, one after the other. So twenty views cost one query, and each topic is read once.

Invariant: Spark counts a micro-batch as done only after every node has committed its part, and no node
begins its part before the plan is durable.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from headwater.engine import checkpoint, failures, milestone
from headwater.engine.inputs import LIMIT, Inputs
from headwater.engine.member import Member
from headwater.engine.recovery import recover
from headwater.engine.slice import Slice
from headwater.errors import Fenced, HeadwaterError, SinkRefused, SinkUnavailable
from headwater.log import Position
from headwater.node import Declaration, Source
from headwater.sinks import crash

ATTEMPTS = 6
"""Failures in a row, without a batch in between, after which a query counts as broken."""
LEAST = 20_000
"""Rows of a topic that a micro-batch may take, however many nodes share it."""


class Query:
    """Runs nodes, together."""

    def __init__(self, checkpoint: Path, upstreams: Callable[[str], Declaration], inputs: Inputs):
        self.checkpoint = checkpoint
        self.members: dict[str, Member] = {}
        self._upstream, self._inputs = upstreams, inputs
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
        self._secured = False

    @property
    def broken(self) -> bool:
        """Whether it is not tried again: a target that cannot be reached is waited for, however long."""
        error = self.error
        away = isinstance(error, SinkUnavailable) and not isinstance(error, SinkRefused)
        return isinstance(error, Fenced) or (error is not None and self.failed >= ATTEMPTS and not away)

    def begin(self, places: Mapping[str, Position]) -> None:
        """Write down where the inputs begin, at the first start; make good what a power loss has left."""
        checkpoint.begin(self.checkpoint, dict(sorted(places.items())))
        recover(self.checkpoint)

    def start(self) -> StreamingQuery:
        """Start, when every member has begun."""
        self._secured = False
        writer = self._stream().writeStream.foreachBatch(self._process)
        self.spark = writer.option("checkpointLocation", str(self.checkpoint.resolve())).start()
        return self.spark

    def passed(self, places: Mapping[str, Position]) -> bool:
        """Tell whether places in inputs are behind it, or it cannot get there because it has failed."""
        if self.spark is None:
            return True
        reached = checkpoint.reached(self.checkpoint, checkpoint.last_done(self.checkpoint))
        wanted = {name: at for name, at in places.items() if name in reached.inputs}
        there = all(reached.inputs[name].position.passed(at) for name, at in wanted.items())
        return there and not any(map(_has_missed, self.members.values()))

    def stop(self) -> None:
        """End, if it is running."""
        if self.spark is not None and self.spark.isActive:
            self.spark.stop()
        self.spark = None

    def _stream(self) -> DataFrame:
        begin = checkpoint.begun(self.checkpoint)
        upstreams = {name: self._declared(name, at) for name, at in begin.items()}
        return self._inputs.plan(upstreams, begin, max(LIMIT // max(len(self.members), 1), LEAST))

    def _declared(self, name: str, at: Position) -> Declaration:
        """Return an input; one that is declared no longer is planned all the same, as Spark counts them."""
        try:
            return self._upstream(name)
        except HeadwaterError:
            none = timedelta()
            return Source(name=name, file="", line=0, schema=pa.schema([]), topic=at.topic, lateness=none)

    def _process(self, rows: DataFrame, number: int) -> None:
        checkpoint.secure(self.checkpoint, number, first=not self._secured)
        self._secured = True
        before = checkpoint.reached(self.checkpoint, number - 1)
        slice = Slice(before, checkpoint.reached(self.checkpoint, number))
        crash.point("query: planned")
        for member in self.members.values():
            _try(member, number, slice)
        failed = next((member.error for member in self.members.values() if member.error), None)
        if failed is not None:
            raise failed
        milestone.write(self.checkpoint, {each.home: each.done for each in self.members.values()})
        crash.point("query: noted")
        self.done += 1


def _try(member: Member, number: int, slice: Slice) -> None:
    """Let a member do its part; what fails there keeps no other from doing its own."""
    try:
        member.process(number, slice)
    except HeadwaterError as error:
        member.error = error
    except Exception as error:
        member.error = failures.of(member.node, error)


def _has_missed(member: Member) -> bool:
    """Tell whether its query has done what a member, by its own account, has not."""
    return milestone.has_missed(milestone.read(member.home), member.checkpoint, member.upstreams)
