"""The records of one micro-batch, for all the nodes that share a query: upstream topic is read once.

Few rows are read by the driver itself, which is faster than to ask workers for them; many are left
to Spark. Invariant: which of the two it is makes no difference to the rows or their order.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Collection, Iterator

import pyarrow as pa
from pyspark.sql import DataFrame

from headwater.engine.batch.inputs import Inputs
from headwater.engine.batch.packed_read import OffsetRange
from headwater.engine.home.checkpoint import InputProgress
from headwater.engine.plan.pruning import NOTHING, Used
from headwater.errors import UnreadableRecord
from headwater.log import Position
from headwater.pipeline.declaration import Declaration

FEW = int(os.environ.get("HEADWATER_DRIVER_ROWS", 20_000))
"""Records up to which a node's part of a micro-batch is computed in the driver."""


def is_few(rows: int) -> bool:
    """Tell whether there are so few rows that workers are not worth asking."""
    return rows <= FEW


class MicroBatch:
    """What lies between two positions in the inputs of a query; nodes side by side may read it."""

    def __init__(self, before: InputProgress, after: InputProgress):
        self.before, self.after = before, after
        self._tables: dict[tuple[str, str], pa.Table] = {}
        self._frames: dict[tuple[str, str], DataFrame] = {}
        self._lock = threading.RLock()

    def is_small(self, names: Collection[str]) -> bool:
        """Tell whether there are so few records of a node's inputs that workers are not worth asking."""
        return is_few(self.size(names))

    def size(self, names: Collection[str]) -> int:
        """Return how many records there are of some inputs."""
        return sum(
            end - self._start(name).offsets.get(partition, 0)
            for name in names
            for partition, end in self._end(name).offsets.items()
        )

    def set_aside(self, inputs: Inputs, names: Collection[str]) -> int:
        """Return how many of the records of some inputs a node leaves out, because its code fails on them."""
        return sum(inputs.count_skipped(self._start(name), self._end(name)) for name in names)

    def table(self, inputs: Inputs, upstream: Declaration) -> pa.Table:
        """Return the records of an input."""
        key = (upstream.name, inputs.skipped(upstream))
        with self._lock:
            if key not in self._tables:
                self._tables[key] = inputs.table(
                    upstream, self._start(upstream.name), self._end(upstream.name)
                )
            return self._tables[key]

    def table_with_offsets(self, inputs: Inputs, upstream: Declaration) -> pa.Table:
        """Return the records of an input, with its partition and offset."""
        return inputs.table_with_offsets(upstream, self._start(upstream.name), self._end(upstream.name))

    def unreadable(self, inputs: Inputs, upstream: Declaration) -> Iterator[UnreadableRecord]:
        """Yield the records of an input that cannot be read."""
        return inputs.unreadable(self._start(upstream.name), self._end(upstream.name))

    def frame(self, inputs: Inputs, upstream: Declaration) -> DataFrame:
        """Return the records of an input as a DataFrame, read by the driver."""
        key = (upstream.name, inputs.skipped(upstream))
        with self._lock:
            if key not in self._frames:
                self._frames[key] = inputs.frame(upstream, self.table(inputs, upstream))
            return self._frames[key]

    def part(self, inputs: Inputs, upstream: Declaration, used: Used = NOTHING) -> DataFrame:
        """Return the records of an input as a DataFrame, read by Spark's workers."""
        start, end = self._start(upstream.name), self._end(upstream.name)
        new = [number for number, last in end.offsets.items() if start.offsets.get(number, 0) < last]
        if not new:
            return inputs.empty(upstream)
        first = Position(end.topic, {number: start.offsets.get(number, 0) for number in new}, end.id)
        last = Position(end.topic, {number: end.offsets[number] for number in new}, end.id)
        return inputs.part(upstream, first, last, used)

    def parts(self, inputs: Inputs, upstream: Declaration, side: int) -> list[OffsetRange]:
        """Return the records of an input as parts that tasks read themselves."""
        start, end = self._start(upstream.name), self._end(upstream.name)
        options = inputs.options(upstream)
        return [
            OffsetRange(side, options, end.id, number, start.offsets.get(number, 0), last)
            for number, last in sorted(end.offsets.items())
            if start.offsets.get(number, 0) < last
        ]

    def _start(self, name: str) -> Position:
        return self.before.inputs[name].position

    def _end(self, name: str) -> Position:
        return self.after.inputs[name].position
