"""The phases of a node: what its stateful operator does when the node's function is called.

A node's function is called more than once, and each time its operator has to do something else. What it does
is a *phase*, a function from the node's stage to the DataFrame that the function goes on with; ``during``
sets it. There are three:

- ``Capturing``: called over empty streams or over one micro-batch, to learn what comes before the operator,
  which notes its stage, and gives no rows.
- ``after_operator``: called for the code behind the operator. It gives the results that a micro-batch has.
- ``over_all_rows``: called over everything, to verify a node, or outside of a pipeline. The operator runs
  over all rows at once.

A node has one stateful operator at the most, so these are all that is needed. Invariant: user code is called
with DataFrames and returns one, and never learns which phase it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

from headwater.engine.exchange import blobs
from headwater.engine.exchange.blobs import BLOB, TAG
from headwater.engine.plan import column_marks
from headwater.engine.plan.empty_stream import EmptyStream, empty_stream
from headwater.engine.stage import runtime
from headwater.errors import UsageError
from headwater.names import backquoted
from headwater.operators.event_time import FOREVER
from headwater.operators.operator import Operator
from headwater.operators.pairing import LEFT, RIGHT, SIDE, Pairing
from headwater.operators.spec import OperatorSpec, Side

BUCKETS = 8
"""Into how many parts everything is divided at once, for a proof."""


@dataclass(frozen=True)
class Stage:
    """What is stateful in a node: the rows that go in, and the operator."""

    name: str
    rows: DataFrame
    operator: Operator[Any]
    schema: pa.Schema
    """Of the rows that go in."""
    output: pa.Schema
    sides: tuple[DataFrame, ...] = ()
    """The inputs: one, or the two of a join."""
    pairing: Pairing | None = None
    tables: tuple[int, ...] = ()
    """Which of the inputs it takes as tables."""

    def input_rows(self, sides: Sequence[pa.Table]) -> pa.Table:
        """Return rows of all inputs as they go in."""
        if self.pairing is None:
            return sides[0].cast(self.schema)
        left, right = sides
        return self.pairing.sent(left, right, self.schema)

    @property
    def late(self) -> pa.Schema:
        """Of rows that come too late."""
        return self.operator.late_schema(self.schema)


Phase = Callable[[Stage], DataFrame]
_phase: ContextVar[Phase | None] = ContextVar("phase", default=None)


def apply(rows: DataFrame, spec: OperatorSpec) -> DataFrame:
    """Return what comes out of an operator for a DataFrame, and the one that it is joined with."""
    inputs = (rows,) if spec.pairing is None else (rows, spec.right)
    sides = [
        Side(arrow_schema(each), column_marks.event_time_of(each), column_marks.key_of(each))
        for each in inputs
    ]
    operator, schema = spec.build(*sides), sides[0].schema
    if spec.pairing is not None:
        schema = spec.pairing.schema(spec.name, schema, sides[1].schema)
        parts = [_side_rows(each, number, spec.pairing, schema) for number, each in enumerate(inputs)]
        rows = parts[0].unionByName(parts[1])
    output = _nullable(operator.output_schema(schema))  # a result that is gone has nothing but its identity
    stage = Stage(spec.name, rows, operator, schema, output, inputs, spec.pairing, spec.tables)
    return _through(stage, sides[0].event_time)


def _side_rows(rows: DataFrame, side: int, pairing: Pairing, schema: pa.Schema) -> DataFrame:
    """Return rows on their way to an operator over two inputs."""
    types = {field.name: field.dataType for field in from_arrow_schema(schema)}
    keys = [
        rows[backquoted(names[side])].cast(types[key]).alias(key)
        for key, names in zip(pairing.key, pairing.on, strict=True)
    ]
    present, absent = ((LEFT, RIGHT), (RIGHT, LEFT))[side]
    record = F.struct(*(rows[backquoted(name)] for name in rows.columns)).alias(present)
    missing = F.lit(None).cast(types[absent]).alias(absent)
    return rows.select(F.lit(side).cast("byte").alias(SIDE), *keys, record, missing)


def _through(stage: Stage, event_time: str | None) -> DataFrame:
    phase = _phase.get()
    if phase is None and stage.rows.isStreaming:
        raise UsageError(
            f"{stage.name} over a stream runs only inside a pipeline",
            hint="use it in a function that @pipeline.view or @pipeline.stream decorates",
        )
    result = (phase or over_all_rows())(stage)
    event_time = stage.operator.event_time_out or event_time
    carried = event_time if event_time in stage.output.names else None
    output = column_marks.marked(result, carried, stage.operator.identity)
    if isinstance(phase, Capturing):
        phase.output = output
    return output


@contextmanager
def during(phase: Phase) -> Iterator[None]:
    """Decide what operators do within the block."""
    before = _phase.set(phase)
    try:
        yield
    finally:
        _phase.reset(before)


class Capturing:
    """Notes the stage, and lets user code go on with no rows."""

    def __init__(self) -> None:
        self.stage: Stage | None = None
        self.results: EmptyStream | None = None
        """What stands for the rows that come out of the operator."""
        self.output: DataFrame | None = None
        """The same, as user code goes on with it."""

    def __call__(self, stage: Stage) -> DataFrame:
        """Take note of the one stateful operator of a node."""
        if self.stage is not None:
            raise UsageError(
                f"a node has one stateful operator at the most: {self.stage.name} and {stage.name}",
                hint="make a stream of the first, and use the second in a node that reads it",
            )
        self.stage = stage
        self.results = empty_stream(stage.rows.sparkSession, stage.output)
        return self.results.frame


def after_operator(results: DataFrame) -> Phase:
    """Let user code go on with what has come out of the operator."""
    return lambda stage: results


def over_all_rows(watermark: int = FOREVER, late: DataFrame | None = None, buckets: int = BUCKETS) -> Phase:
    """Run the operator over all rows at once, but for those that were judged to be late."""

    def run(stage: Stage) -> DataFrame:
        tagged = runtime.over_all_rows(stage.rows, stage.operator, stage.schema, watermark, buckets, late)
        main = tagged.filter(tagged[TAG] == runtime.MAIN).select(BLOB)
        return main.mapInArrow(_unpacking(), from_arrow_schema(stage.output))

    return run


def _unpacking() -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def unpack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for blob in batch.column(0).to_pylist():
                yield from blobs.decode(blob).to_batches()

    return unpack


def arrow_schema(rows: DataFrame) -> pa.Schema:
    """Return the schema that a DataFrame's rows have as Arrow, every column nullable."""
    return _nullable(to_arrow_schema(rows.schema, timezone="UTC"))


def _nullable(schema: pa.Schema) -> pa.Schema:
    return pa.schema([field.with_nullable(True).remove_metadata() for field in schema])
