"""A topic as the target of a query, or a batch, of plain Spark.

Tasks write nothing: they hand their rows to the driver, which appends those of a micro-batch as a
producer of the query's own, numbered by the micro-batch. A query's identifier is in its checkpoint, so it
is the same after a restart. Invariant: a task that runs again, and a micro-batch that comes again after
a crash, change nothing.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

from headwater.engine.exchange import worker_gc
from headwater.engine.exchange.blobs import decode, encode
from headwater.engine.source.log_options import opened
from headwater.errors import HeadwaterError
from headwater.sinks.sink import Batch
from headwater.sinks.topic import TopicSink

_QUERY = "sql.streaming.queryId"
"""Under which Spark tells a task of which query it is."""

Messages = Sequence[WriterCommitMessage | None]


@dataclass
class Handed(WriterCommitMessage):
    """The rows of a task, in their order."""

    query: str
    rows: bytes


class StreamWriter(DataSourceStreamArrowWriter):
    """Appends the micro-batches of a query to a topic, effectively once."""

    def __init__(self, options: Mapping[str, str]):
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Return the rows of a task."""
        task = TaskContext.get()
        query = task.getLocalProperty(_QUERY) if task is not None else None
        if query is None:
            raise HeadwaterError("Spark does not tell of which query these rows are")
        return _handed(query, iterator)

    def commit(self, messages: Messages, batchId: int) -> None:  # the name is Spark's
        """Append the rows of all tasks, unless they are there."""
        handed = [each for each in messages if isinstance(each, Handed) and each.rows]
        if handed:
            _append(self._options, handed, batchId, f"spark.{handed[0].query}")

    def abort(self, messages: Messages, batchId: int) -> None:  # as above
        """Do nothing: nothing was written."""


class BatchWriter(DataSourceArrowWriter):
    """Appends the rows of a DataFrame to a topic, once it has all of them."""

    def __init__(self, options: Mapping[str, str]):
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Return the rows of a task."""
        return _handed("", iterator)

    def commit(self, messages: Messages) -> None:
        """Append the rows of all tasks, in their order."""
        handed = [each for each in messages if isinstance(each, Handed) and each.rows]
        if handed:
            _append(self._options, handed, 0, f"spark.{uuid.uuid4()}")

    def abort(self, messages: Messages) -> None:
        """Do nothing: nothing was written."""


def _handed(query: str, batches: Iterator[pa.RecordBatch]) -> Handed:
    worker_gc.freeze()
    full = [batch for batch in batches if len(batch)]
    return Handed(query, encode(pa.Table.from_batches(full)) if full else b"")


def _append(options: Mapping[str, str], handed: Sequence[Handed], number: int, producer: str) -> None:
    rows = pa.concat_tables([decode(each.rows) for each in handed])
    with opened(options) as log, TopicSink(log, options["topic"], producer) as sink:
        if number <= sink.begin():  # Spark repeats the newest micro-batch only
            raise HeadwaterError(
                f'the checkpoint of a query is older than what it has written to topic "{options["topic"]}"',
                detail=f"micro-batch {number} comes again, and later ones are there",
                hint="restore the checkpoint, or start the query anew with another one",
            )
        sink.commit(Batch(number, rows))
