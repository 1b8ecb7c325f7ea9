"""Runs an operator, bucket by bucket, inside Spark: as a stateful stream, and over a batch.

Invariant: an operator's state lives in Spark's state store and nowhere else; what a worker
remembers only spares it the reading.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from operator import itemgetter
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import BinaryType, LongType, StringType, StructField, StructType

from headwater.engine import blobs, worker
from headwater.engine.blobs import BLOB, BUCKET, PACKED, RESULT, TAG, TASK
from headwater.engine.bucket import Bucket, Meta
from headwater.engine.judged import without
from headwater.operators import operator as operators
from headwater.operators.operator import NEVER, Operator, Step

MAIN, LATE, NOTE = "main", "late", "note"
_META = StructType([StructField("meta", StringType())])
_NUMBER = StructType([StructField("number", LongType())])
_NO_TASK = -1
"""Stands where rows are of no task: those that were judged to be late."""
_CHUNK = StructType([StructField("data", BinaryType())])


def packed(rows: DataFrame, operator: Operator[Any], schema: pa.Schema, buckets: int) -> DataFrame:
    """Return rows as blobs, one per bucket and task."""
    keys = [F.col(f"`{name}`") for name in operator.key]
    bucket = F.pmod(F.hash(*keys), F.lit(buckets)) if keys else F.lit(0)
    return rows.withColumn("_bucket", bucket.cast("int")).mapInArrow(blobs.packing(schema), PACKED)


def streamed(
    rows: DataFrame, operator: Operator[Any], schema: pa.Schema, node: str, timed: bool, buckets: int
) -> DataFrame:
    """Return the tagged blobs that come out of an operator over a stream."""
    return (
        packed(rows, operator, schema, buckets)
        .groupBy(BUCKET)
        .transformWithStateInPandas(
            Processor(operator, schema, node),
            outputStructType=RESULT,
            outputMode="append",
            timeMode="EventTime" if timed else "None",
        )
    )


def batched(
    rows: DataFrame,
    operator: Operator[Any],
    schema: pa.Schema,
    clock: int,
    buckets: int,
    late: DataFrame | None = None,
) -> DataFrame:
    """Return the tagged blobs that come out of an operator over all rows at once, but for those too late."""
    blobs = packed(rows, operator, schema, buckets)
    if late is not None:
        blobs = blobs.union(packed(late, operator, schema, buckets).withColumn(TASK, F.lit(_NO_TASK)))
    return blobs.groupBy(BUCKET).applyInArrow(_whole(operator, schema, clock), RESULT)


def _whole(operator: Operator[Any], schema: pa.Schema, clock: int) -> Callable[[pa.Table], pa.Table]:
    def run(table: pa.Table) -> pa.Table:
        table = table.sort_by(TASK)
        judged = pc.equal(table.column(TASK), _NO_TASK)
        rows, late = (
            blobs.decode_all(table.filter(which).column(BLOB).to_pylist(), schema)
            for which in (pc.invert(judged), judged)
        )
        rows = without(rows, late)
        bucket = table.column(BUCKET)[0].as_py()
        tagged = [pair for step in operators.run(operator, rows, clock) for pair in _tagged(step)]
        return pa.table(
            {
                BUCKET: pa.array([bucket] * len(tagged), pa.int32()),
                TAG: pa.array([tag for tag, _ in tagged], pa.string()),
                BLOB: pa.array([blob for _, blob in tagged], pa.binary()),
            }
        )

    return run


def _tagged(step: Step) -> Iterator[tuple[str, bytes]]:
    if step.out.num_rows:
        yield MAIN, blobs.encode(step.out)
    if step.late is not None and step.late.num_rows:
        yield LATE, blobs.encode(step.late)


class Processor(StatefulProcessor):
    """Steps an operator for each bucket that has new rows or wants to be woken."""

    def __init__(self, operator: Operator[Any], schema: pa.Schema, node: str):
        self._operator, self._schema, self._node = operator, schema, node

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Declare the state."""
        worker.settle()
        self._handle = handle
        self._meta = handle.getValueState("meta", _META)
        self._chunks = _SparkChunks(handle.getMapState("chunks", _NUMBER, _CHUNK))

    def handleInputRows(
        self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any
    ) -> Iterator[pd.DataFrame]:
        """Step with a bucket's new rows."""
        arrived = [pair for frame in rows for pair in zip(frame[TASK], frame[BLOB], strict=True)]
        ordered = [blob for _, blob in sorted(arrived, key=itemgetter(0))]
        yield self._step(key[0], blobs.decode_all(ordered, self._schema), timerValues)

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[pd.DataFrame]:
        """Step without rows: time has come."""
        yield self._step(key[0], self._schema.empty_table(), timerValues)

    def close(self) -> None:
        """Release nothing: the state is Spark's."""

    def _step(self, number: int, rows: pa.Table, timers: Any) -> pd.DataFrame:
        told = self._meta.get() if self._meta.exists() else None
        meta = Meta.decode(told[0]) if told else Meta()
        bucket = Bucket(self._operator, self._schema, (self._node, int(number)), self._chunks)
        loaded = bucket.load(meta)
        step = self._operator.step(loaded.state, rows, _clock(timers))
        after = self._timed(bucket.store(meta, loaded.state, step.chunk), loaded.state)
        if after != meta:
            self._meta.update((after.encode(),))
        note = {
            "bucket": int(number),
            "rows": rows.num_rows,
            "late": step.late.num_rows if step.late is not None else 0,
            "duplicates": step.duplicates,
            "out": step.out.num_rows,
            "state": after.size,
            "hits": int(loaded.hit),
            "loads": int(bool(meta.chunks)),
            "read": loaded.bytes_read,
        }
        tagged = [*_tagged(step), (NOTE, json.dumps(note).encode())]
        return pd.DataFrame(
            {BUCKET: [int(number)] * len(tagged), TAG: [t for t, _ in tagged], BLOB: [b for _, b in tagged]}
        )

    def _timed(self, meta: Meta, state: Any) -> Meta:
        """Keep one timer, at the time the operator wants."""
        wake = self._operator.wake(state)
        timer = None if wake is None else max(0, -(-wake // 1000))
        if timer == meta.timer:
            return meta
        if meta.timer is not None:
            self._handle.deleteTimer(meta.timer)
        if timer is not None:
            self._handle.registerTimer(timer)
        return replace(meta, timer=timer)


class _SparkChunks:
    """Chunks in Spark's map state."""

    def __init__(self, map_state: Any):
        self._map = map_state

    def get(self, number: int) -> bytes:
        return bytes(self._map.getValue((number,))[0])

    def put(self, number: int, data: bytes) -> None:
        self._map.updateValue((number,), (data,))

    def remove(self, number: int) -> None:
        self._map.removeKey((number,))


def _clock(timers: Any) -> int:
    told = timers.getCurrentWatermarkInMs()
    return NEVER if told <= 0 else told * 1000
