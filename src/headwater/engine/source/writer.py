"""A topic as the target of a query, or a batch, of plain Spark.

Tasks write nothing: they hand their rows to the driver, which appends those of a micro-batch as a
producer of the query's own, numbered by the micro-batch. A query's identifier is in its checkpoint, so it
is the same after a restart. Invariant: a task that runs again, and a micro-batch that comes again after
a crash, change nothing, though the topic may have got partitions meanwhile.
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
from headwater.engine.source.placements import Placements
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
            _append_once(self._options, handed, batchId)

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
            producer, topic = f"spark.{uuid.uuid4()}", self._options["topic"]
            with opened(self._options) as log, TopicSink(log, topic, producer) as sink:
                sink.begin()
                sink.commit(Batch(0, _rows(handed)))

    def abort(self, messages: Messages) -> None:
        """Do nothing: nothing was written."""


def _handed(query: str, batches: Iterator[pa.RecordBatch]) -> Handed:
    worker_gc.freeze()
    full = [batch for batch in batches if len(batch)]
    return Handed(query, encode(pa.Table.from_batches(full)) if full else b"")


def _rows(handed: Sequence[Handed]) -> pa.Table:
    return pa.concat_tables([decode(each.rows) for each in handed])


def _append_once(options: Mapping[str, str], handed: Sequence[Handed], number: int) -> None:
    topic, query = options["topic"], handed[0].query
    with opened(options) as log, TopicSink(log, topic, f"spark.{query}") as sink:
        if number <= sink.begin():  # Spark repeats the newest micro-batch only
            raise _older(topic, number)
        placements = Placements(log, topic, query)
        if sink.newest == number:
            sink.partitions = placements.partitions_of(number)
        else:
            placements.note(number, sink.partitions)
        sink.commit(Batch(number, _rows(handed)))


def _older(topic: str, number: int) -> HeadwaterError:
    return HeadwaterError(
        f'the checkpoint of a query is older than what it has written to topic "{topic}"',
        detail=f"micro-batch {number} comes again, and later ones are there",
        hint="restore the checkpoint, or start the query anew with another one",
    )
