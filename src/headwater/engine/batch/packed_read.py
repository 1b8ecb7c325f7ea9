"""Records that the task which packs them reads itself: where no code of the user's comes before an
operator, they need not become rows of Spark's first.

Invariant: the blobs are those that ``runtime.packed`` makes of the same records, in the same order.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from headwater.engine.exchange import blobs, worker_gc
from headwater.engine.exchange.blobs import PACKED
from headwater.engine.plan.phases import Stage
from headwater.engine.source.data_source import pieces
from headwater.engine.source.records import read
from headwater.log.prefetched import Span
from headwater.operators.pairing import Pairing

LEAST = 25_000
"""Records that are worth a task."""


@dataclass(frozen=True)
class OffsetRange:
    """Records of one partition, from an offset to another."""

    side: int
    options: Mapping[str, str]
    """Those of the data source: ``url``, ``topic``, and perhaps ``log`` and ``skip``."""
    id: str | None
    """The topic's identity."""
    partition: int
    start: int
    end: int

    def cut(self, length: int) -> Iterator[OffsetRange]:
        """Yield shorter parts of it, in order."""
        for start in range(self.start, self.end, length):
            yield replace(self, start=start, end=min(start + length, self.end))

    def read(self, schema: pa.Schema) -> pa.Table:
        """Return the records."""
        topic, skips = self.options["topic"], json.loads(self.options.get("skip", "{}"))
        found = [
            batch.select(schema.names)
            for first, last in pieces(self.start, self.end, skips.get(str(self.partition), ()))
            for batch in read(self.options, Span(topic, self.id, self.partition, first, last))
        ]
        return pa.Table.from_batches(found).cast(schema) if found else schema.empty_table()


def packed(
    spark: SparkSession, parts: Sequence[OffsetRange], stage: Stage, sides: Sequence[pa.Schema], buckets: int
) -> DataFrame:
    """Return the blobs of records, one per bucket and task, with how many they are."""
    cut = list(_cut(parts, spark.sparkContext.defaultParallelism))
    packing = _packing(cut, stage.pairing, stage.schema, sides, stage.operator.key, buckets)
    return spark.range(0, len(cut), 1, len(cut)).mapInArrow(packing, PACKED)


def _cut(parts: Sequence[OffsetRange], tasks: int) -> Iterator[OffsetRange]:
    """Cut parts so that all tasks have something to do; a broker itself is asked for whole ones."""
    total = sum(part.end - part.start for part in parts)
    for part in parts:
        near = part.options["url"].startswith("file:") or "prefetch" in part.options
        yield from part.cut(max(-(-total // tasks), LEAST) if near else total)


def _packing(
    parts: Sequence[OffsetRange],
    pairing: Pairing | None,
    schema: pa.Schema,
    sides: Sequence[pa.Schema],
    key: Sequence[str],
    buckets: int,
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def pack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        worker_gc.freeze()
        for batch in batches:
            for number in batch.column(0).to_pylist():
                part = parts[number]
                read = [side.empty_table() for side in sides]
                read[part.side] = part.read(sides[part.side])
                rows = read[0].cast(schema) if pairing is None else pairing.sent(read[0], read[1], schema)
                yield blobs.packed(rows.combine_chunks(), key, buckets, number, tally=True)

    return pack
