"""What a node's code after its operator makes of results, and the results on which it fails.

Those are found as records are before the operator. Invariant: what is set aside fails
alone, and the other results are taken as if it had not come.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

from headwater.engine.batch.failing_records import MOST
from headwater.engine.batch.inputs import Inputs
from headwater.engine.batch.micro_batch import is_few
from headwater.engine.exchange.frames import frame
from headwater.engine.failure import failures
from headwater.engine.failure.failing_rows import Search
from headwater.engine.failure.guarded_plan import ROW
from headwater.engine.plan import keyed_results, phases
from headwater.engine.plan.shape import RESULTS, Shape
from headwater.engine.plan.user_code import call
from headwater.errors import HeadwaterError, PipelineError
from headwater.operators.operator import ERROR


@dataclass(frozen=True)
class Finished:
    """What has become of an operator's results."""

    made: pa.Table
    dead: pa.Table | None = None
    """Results that were set aside, each with what was said of it."""


@dataclass(frozen=True)
class Finishing:
    """Calls the code behind the operator of a node."""

    shape: Shape
    inputs: Inputs
    most: int | None = MOST
    """Results that are set aside at once; a proof, which sees those of all micro-batches, has no limit."""

    def finish(self, results: pa.Table) -> Finished:
        """Return what the node makes of results; those on which its code fails are named, or set aside."""
        shape = self.shape
        if shape.bare or not results.num_rows:
            return Finished(results.cast(shape.schema) if shape.bare else shape.schema.empty_table())
        assert shape.stage is not None
        if not keyed_results.settles(shape.node, shape.stage):
            return self._finished(results)
        last = keyed_results.last(results, shape.stage.operator.identity)
        done = self._finished(keyed_results.living(last))
        return Finished(keyed_results.without_gone(shape.node, done.made, last), done.dead)

    def _finished(self, results: pa.Table) -> Finished:
        if not results.num_rows:
            return Finished(self.shape.schema.empty_table())
        try:
            return Finished(self._made(results))
        except HeadwaterError:
            raise
        except Exception as error:
            return self._without(results, self._failing(results, error))

    def _made(self, results: pa.Table) -> pa.Table:
        made = (
            self.shape.last.evaluated({RESULTS: self._frame(results)}) if is_few(results.num_rows) else None
        )
        return self._code(results).toArrow().cast(self.shape.schema) if made is None else made

    def _code(self, results: pa.Table) -> DataFrame:
        upstreams = self.shape.upstreams
        with phases.during(phases.finishing(self._frame(results).drop(ROW))):
            return call(self.shape.node, {name: self.inputs.empty(each) for name, each in upstreams.items()})

    def _frame(self, results: pa.Table) -> DataFrame:
        return frame(self.shape.rows.sparkSession, results)

    def _failing(self, results: pa.Table, error: Exception) -> dict[int, str]:
        """Return the places of the results that are to blame, and what was said of each."""
        node = self.shape.node
        limit = results.num_rows if self.most is None else self.most
        found = Search(node, self._code).failing(results, limit + 1)
        if not found or len(found) > limit:  # it fails on none alone, or on all: the code is wrong
            raise failures.of(node, error) from error
        if node.on_error != "dead_letter":
            raise _stopped(self.shape, results, found) from error
        return found

    def _without(self, results: pa.Table, failing: dict[int, str]) -> Finished:
        good = np.ones(results.num_rows, bool)
        good[list(failing)] = False
        dead = results.take(list(failing)).append_column(ERROR, pa.array(failing.values(), pa.string()))
        left = results.filter(pa.array(good))
        return Finished(self._made(left) if left.num_rows else self.shape.schema.empty_table(), dead)


def _stopped(shape: Shape, results: pa.Table, failing: dict[int, str]) -> PipelineError:
    assert shape.stage is not None
    place, said = next(iter(failing.items()))
    (row,) = results.slice(place, 1).to_pylist()
    shown = ", ".join(f"{name}={value}" for name, value in row.items())
    return PipelineError(
        f"{shape.node.title} failed on {len(failing)} of the results of its {shape.stage.name}",
        detail=f"{said}: ({shown})",
        hint='correct the code, or set such results aside with on_error="dead_letter"',
        location=shape.node.location,
    )
