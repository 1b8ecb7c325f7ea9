"""Starts Spark's Python workers while a pipeline is being started, so that its first records need not wait.

The first micro-batch in Spark's workers starts them, and lets Java load what such a job needs: together
seconds of it. Meanwhile a query has a planner to start, which leaves a core idle. So a job of the same shape,
over nothing, runs beside that. Invariant: a pipeline neither waits for it nor fails by it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import SparkSession

from headwater.engine.exchange.blobs import BLOB, BUCKET, PACKED, RESULT, TAG, TASK


def start_workers(spark: SparkSession) -> threading.Thread:
    """Let workers start in the background, as many as there are cores; the thread ends when they have."""
    thread = threading.Thread(target=_run_job, args=(spark,), name="headwater-workers", daemon=True)
    thread.start()
    return thread


def _run_job(spark: SparkSession) -> None:
    try:
        tasks = spark.sparkContext.defaultParallelism
        packed = spark.range(0, tasks, 1, tasks).mapInArrow(_pack, PACKED)
        packed.repartitionById(tasks, BUCKET).mapInArrow(_step, RESULT).collect()
    except Exception:  # whatever it is, the first micro-batch meets it too, and says so
        return


def _pack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    import headwater.engine.batch.packed_read  # noqa: F401  what most tasks import

    for batch in batches:
        numbers = batch.column(0).cast(pa.int32())
        yield pa.RecordBatch.from_pydict({BUCKET: numbers, TASK: numbers, BLOB: pa.array([b""] * len(batch))})


def _step(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        numbers, blobs = batch.column(0), batch.column(2)
        yield pa.RecordBatch.from_pydict({BUCKET: numbers, TAG: pa.array([""] * len(batch)), BLOB: blobs})
