"""The records of one micro-batch, for all the nodes that share a query: each topic is read once.

Few rows are read by the driver itself, which is faster than to ask workers for them; many are left
to Spark. Invariant: which of the two it is makes no difference to the rows or their order.
"""

from __future__ import annotations

import os
import threading

import pyarrow as pa
from pyspark.sql import DataFrame

from headwater.engine.checkpoint import Reached
from headwater.engine.direct import Part
from headwater.engine.inputs import Inputs
from headwater.engine.pruning import NOTHING, Used
from headwater.log import Position
from headwater.node import Declaration

FEW = int(os.environ.get("HEADWATER_DRIVER_ROWS", 20_000))
"""Records up to which it is the driver that computes a micro-batch; they are counted for each node anew."""
SIDE_BY_SIDE = 4
"""Nodes that are computed at the same time, where there are cores for them."""
JOB_SECONDS, DRIVER_RATE = 0.25, 400_000
"""What a job of Spark's costs, however small, and how many records a second the driver gets through."""


class Slice:
    """What lies between two places in the inputs of a query; nodes side by side may read it."""

    def __init__(self, before: Reached, after: Reached):
        self.before, self.after = before, after
        self.small = False
        """Whether the driver computes all of it."""
        self._tables: dict[tuple[str, str], pa.Table] = {}
        self._frames: dict[tuple[str, str], DataFrame] = {}
        self._lock = threading.RLock()

    def weigh(self, nodes: list[list[str]], cores: int) -> None:
        """Decide, by the inputs of all nodes, whether the driver computes it or Spark's workers do.

        The driver takes one node's records after the other's; workers take them side by side, on all cores,
        but each node costs a job.
        """
        rows = [size for names in nodes if (size := self.size(names))]
        driver = sum(rows) / DRIVER_RATE
        spark = sum(JOB_SECONDS + size / DRIVER_RATE / cores for size in rows) / min(cores, SIDE_BY_SIDE)
        self.small = FEW > 0 and (sum(rows) <= FEW or (max(rows, default=0) <= FEW and driver <= spark))

    def size(self, names: list[str]) -> int:
        """Return how many records there are of some inputs."""
        return sum(
            end - self._start(name).offsets.get(partition, 0)
            for name in names
            for partition, end in self._end(name).offsets.items()
        )

    def table(self, inputs: Inputs, each: Declaration) -> pa.Table:
        """Return the records of an input."""
        key = (each.name, inputs.skipped(each))
        with self._lock:
            if key not in self._tables:
                self._tables[key] = inputs.table(each, self._start(each.name), self._end(each.name))
            return self._tables[key]

    def frame(self, inputs: Inputs, each: Declaration) -> DataFrame:
        """Return the records of an input as a DataFrame, read by the driver."""
        key = (each.name, inputs.skipped(each))
        with self._lock:
            if key not in self._frames:
                self._frames[key] = inputs.frame(each, self.table(inputs, each))
            return self._frames[key]

    def part(self, inputs: Inputs, each: Declaration, used: Used = NOTHING) -> DataFrame:
        """Return the records of an input as a DataFrame, read by Spark's workers."""
        start, end = self._start(each.name), self._end(each.name)
        new = [number for number, last in end.offsets.items() if start.offsets.get(number, 0) < last]
        if not new:
            return inputs.empty(each)
        first = Position(end.topic, {number: start.offsets.get(number, 0) for number in new}, end.id)
        last = Position(end.topic, {number: end.offsets[number] for number in new}, end.id)
        return inputs.part(each, first, last, used)

    def parts(self, inputs: Inputs, each: Declaration, side: int) -> list[Part]:
        """Return the records of an input as parts that tasks read themselves."""
        start, end = self._start(each.name), self._end(each.name)
        options = inputs.options(each)
        return [
            Part(side, options, end.id, number, start.offsets.get(number, 0), last)
            for number, last in sorted(end.offsets.items())
            if start.offsets.get(number, 0) < last
        ]

    def _start(self, name: str) -> Position:
        return self.before.inputs[name].position

    def _end(self, name: str) -> Position:
        return self.after.inputs[name].position
