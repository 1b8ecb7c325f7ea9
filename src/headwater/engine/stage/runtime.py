"""Runs an operator, bucket by bucket, on Spark: over a micro-batch, and over everything at once.

Invariant: a task changes nothing that is stored; what it has learnt counts when the driver says so.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from headwater.engine.exchange import blobs, worker_gc
from headwater.engine.exchange.blobs import BLOB, BUCKET, PACKED, RESULT, TAG, TALLY, TASK
from headwater.engine.exchange.frames import frame
from headwater.engine.stage.bucket_step import StepContext, StepResult
from headwater.engine.stage.late_subtraction import without
from headwater.engine.state.bucket import BucketMeta
from headwater.errors import HeadwaterError
from headwater.operators import operator as operators
from headwater.operators.operator import Operator

MAIN, LATE, DEAD, NOTE, COUNT = "main", "late", "dead", "note", "count"
_NO_TASK = -1
"""Stands where rows are of no task: those that were judged to be late, and buckets that are woken."""


@dataclass(frozen=True)
class Results:
    """What came out of all buckets of a node in a micro-batch."""

    main: pa.Table
    late: pa.Table
    dead: list[pa.Table]
    buckets: dict[int, BucketMeta]
    """Those that were stepped, as they are now."""
    notes: list[dict[str, Any]]

    def check(self, rows: int) -> None:
        """Refuse results that do not account for every row: what went in, out, and was late."""
        pairs = {
            "rows in": (rows, self._counted("rows")),
            "rows out": (self.main.num_rows, self._counted("out")),
            "late rows": (self.late.num_rows, self._counted("late")),
            "dead rows": (sum(table.num_rows for table in self.dead), self._counted("dead")),
        }
        wrong = [f"{name}: {a} here, {b} counted by buckets" for name, (a, b) in pairs.items() if a != b]
        if wrong:
            raise HeadwaterError("the rows of a micro-batch do not add up", detail="; ".join(wrong))

    def _counted(self, name: str) -> int:
        return sum(note[name] for note in self.notes)


def combine(done: list[StepResult], late_schema: pa.Schema, output: pa.Schema) -> Results:
    """Return what came out of buckets that were stepped in this process."""
    main = [table for each in done for table in each.out]
    late = [table for each in done for table in each.late]
    return Results(
        _joined(main, output),
        _joined(late, late_schema),
        [table for each in done for table in each.dead],
        {each.bucket: each.meta for each in done},
        [_note(each) for each in done],
    )


def step_in_workers(work: StepContext, blobs_: DataFrame, output: pa.Schema) -> Results:
    """Let all buckets take their rows, packed into blobs, in Spark's workers."""
    spark, due = blobs_.sparkSession, work.due()
    if due:
        none = blobs.encode(work.schema.empty_table())
        woken = pa.table({BUCKET: due, TASK: [_NO_TASK] * len(due), BLOB: [none] * len(due)})
        blobs_ = blobs_.union(frame(spark, woken, PACKED))
    tasks = spark.sparkContext.defaultParallelism
    # As slots over buckets: those that lie side by side, so that each task has as many as the others.
    task = F.greatest(F.lit(0), F.col(BUCKET)) * min(tasks, work.count) / work.count
    by_task = blobs_.repartitionById(min(tasks, work.count), task.cast("int"))
    stepped = by_task.mapInArrow(_stepping(work), RESULT)
    return _collected(stepped, work.operator.late_schema(work.schema), output)


def over_all_rows(
    rows: DataFrame,
    operator: Operator[Any],
    schema: pa.Schema,
    watermark: int,
    buckets: int,
    late: DataFrame | None = None,
) -> DataFrame:
    """Return the tagged blobs that come out of an operator over all rows at once, but for those too late."""
    blobs = packed(rows, operator, buckets)
    if late is not None:
        blobs = blobs.union(packed(late, operator, buckets).withColumn(TASK, F.lit(_NO_TASK)))
    return blobs.groupBy(BUCKET).applyInArrow(_over_all_rows(operator, schema, watermark), RESULT)


def packed(rows: DataFrame, operator: Operator[Any], buckets: int, tally: bool = False) -> DataFrame:
    """Return rows as blobs, one per bucket and task."""
    return rows.mapInArrow(blobs.packing(operator.key, buckets, tally), PACKED)


def _stepping(work: StepContext) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return what lets all buckets of a task take their rows: what they learn is stored together."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        worker_gc.freeze()
        packed: dict[int, list[tuple[int, bytes]]] = {}
        for batch in batches:
            for bucket, task, blob in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                packed.setdefault(bucket, []).append((task, blob))
        tallies = packed.pop(TALLY, [])
        yield from _tagged(TALLY, [(COUNT, blob) for _, blob in tallies]).to_batches()
        rows = {bucket: _in_order(blobs_, work.schema) for bucket, blobs_ in packed.items()}
        for done in work.step(rows):
            note = (NOTE, json.dumps({**_note(done), "meta": done.meta.to_json()}).encode())
            out = (*_encoded(MAIN, done.out), *_encoded(LATE, done.late), *_encoded(DEAD, done.dead))
            yield from _tagged(done.bucket, [*out, note]).to_batches()

    return run


def _in_order(packed_: list[tuple[int, bytes]], schema: pa.Schema) -> pa.Table:
    return blobs.decode_all((blob for _, blob in sorted(packed_, key=itemgetter(0))), schema)


def _over_all_rows(
    operator: Operator[Any], schema: pa.Schema, watermark: int
) -> Callable[[pa.Table], pa.Table]:
    def run(table: pa.Table) -> pa.Table:
        table = table.sort_by(TASK)
        judged = pc.equal(table.column(TASK), _NO_TASK)
        rows, late = (
            blobs.decode_all(table.filter(which).column(BLOB).to_pylist(), schema)
            for which in (pc.invert(judged), judged)
        )
        steps = operators.run(operator, without(rows, late), watermark)
        out = [step.out for step in steps if step.out.num_rows]
        return _tagged(table.column(BUCKET)[0].as_py(), _encoded(MAIN, out))

    return run


def _encoded(tag: str, tables: list[pa.Table]) -> Iterator[tuple[str, bytes]]:
    return ((tag, blobs.encode(table)) for table in tables)


def _tagged(bucket: int, tagged: Any) -> pa.Table:
    listed = list(tagged)
    return pa.table(
        {
            BUCKET: pa.array([bucket] * len(listed), pa.int32()),
            TAG: pa.array([tag for tag, _ in listed], pa.string()),
            BLOB: pa.array([blob for _, blob in listed], pa.binary()),
        }
    )


def _note(done: StepResult) -> dict[str, Any]:
    return {
        "bucket": done.bucket,
        "rows": done.rows,
        "late": sum(table.num_rows for table in done.late),
        "dead": sum(table.num_rows for table in done.dead),
        "duplicates": done.duplicates,
        "out": sum(table.num_rows for table in done.out),
        "state": done.meta.size,
        "hits": int(done.hit),
        "loads": int(done.loaded),
        "read": done.read,
        "held": done.held,
        "keys": done.keys,
    }


def _collected(results: DataFrame, late_schema: pa.Schema, output: pa.Schema) -> Results:
    tagged: dict[str, list[bytes]] = {tag: [] for tag in (MAIN, LATE, DEAD, NOTE, COUNT)}
    # In an order that a repeated micro-batch has too: rows are numbered by it.
    for row in sorted(results.collect(), key=itemgetter(BUCKET)):
        tagged[row[TAG]].append(bytes(row[BLOB]))
    notes = [json.loads(note) for note in tagged[NOTE]]
    buckets = {note["bucket"]: BucketMeta.from_json(note.pop("meta")) for note in notes}
    main, late = blobs.decode_all(tagged[MAIN], output), blobs.decode_all(tagged[LATE], late_schema)
    collected = Results(main, late, list(map(blobs.decode, tagged[DEAD])), buckets, notes)
    collected.check(sum(map(int, tagged[COUNT])))
    return collected


def _joined(tables: list[pa.Table], schema: pa.Schema) -> pa.Table:
    return pa.concat_tables([table.cast(schema) for table in tables]) if tables else schema.empty_table()
