"""A derived topic: a node's results go back to the log, where other nodes and programs read them.

The log's own numbers make it effectively once: row ``i`` of batch ``n``, in the order of
``headwater.sinks.row_order``, has the sequence number ``(n << 32) + i``, and a log leaves out a number
it has from the same producer in the partition. So a batch that is repeated must go to the partitions that it
went to before, though the topic may have more of them now: it is placed by those of the receipt before it.
Invariant: after a commit the topic has every row of the batch once, however often the batch was replayed, and
in whichever order its rows came.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from headwater.errors import Fenced, UsageError
from headwater.log.interface import Log
from headwater.log.position import Position
from headwater.log.producer import Producer
from headwater.record import DELETED
from headwater.sinks import crash
from headwater.sinks.row_order import replay_order
from headwater.sinks.sink import Batch, Sink

_ROW_BITS = 32


class TopicSink(Sink):
    """Appends a node's results to a topic, as the producer ``producer_id``.

    Rows of one key keep their order, and those of a topic with one partition all do. In a compacted
    topic a row whose ``_deleted`` is true becomes a tombstone; other topics refuse deletions. The node's
    clock is appended as a mark where the topic has an event time, so that time goes on downstream though
    nothing is emitted.

    A batch is visible at once within a partition, not across partitions. The log tells no more than the
    newest sequence number, so ``begin`` names the batch before the newest one that has left a row there:
    that one may lack a part, and a batch without rows leaves nothing. Replaying either is harmless.

    ``partitions`` is by how many partitions rows are placed until a receipt says otherwise, or it is set; as
    many as the topic has at ``begin``, unless given.

    >>> import headwater
    >>> log = headwater.open("memory:")
    >>> _ = log.create_topic("totals", "shop STRING, total BIGINT")
    >>> rows = pa.table({"shop": ["a", "b"], "total": [1, 2]})
    >>> for attempt in (1, 2):
    ...     with TopicSink(log, "totals", "totals-node") as sink:
    ...         _ = sink.begin()
    ...         print(sink.commit(Batch(0, rows)), log.resolve("totals", "latest").offsets)
    True {0: 2}
    False {0: 2}
    """

    def __init__(self, log: Log, topic: str, producer_id: str, *, partitions: int | None = None):
        self._log, self._topic, self._id = log, topic, producer_id
        self._given = partitions
        self.partitions = partitions or 1
        """By how many partitions rows are placed, from ``begin`` on."""
        self._producer: Producer | None = None
        self._there = -1
        self._committed = -1
        self._marked: int | None = None
        self._end = Position(topic)

    def begin(self) -> int:
        """Take over as the producer; return the last batch that is known to be whole, or -1."""
        if self._producer is not None:
            self.close()
        self._producer = self._log.producer(self._topic, id=self._id)
        self._there = self._producer.sequence - 1
        self._end = self._log.resolve(self._topic, "latest")
        self.partitions = self._given or len(self._end.offsets)
        return max(-1, (self._there >> _ROW_BITS) - 1)

    @property
    def newest(self) -> int:
        """The newest batch that had left a row at ``begin``, whole or not, or -1."""
        return self._there >> _ROW_BITS

    def commit(self, batch: Batch) -> bool:
        """Append a batch; return False if its last row was there before, and then only what lacked."""
        if self._producer is None:
            raise UsageError(f'sink of topic "{self._topic}" has not begun', hint="call begin() first")
        if batch.number <= self._committed:
            return False
        first = batch.number << _ROW_BITS
        self._append(self._producer, batch.rows, first)
        self._mark(self._producer, batch.watermark)
        self._committed = batch.number
        return not first <= first + batch.rows.num_rows - 1 <= self._there

    def receipt(self) -> str:
        """Return where the topic ends, which has an identity of its own; the next batch is placed by it."""
        self.partitions = len(self._end.offsets)
        return str(self._end)

    def resume(self, receipt: str) -> str | None:
        """Place rows by a receipt; tell whether the topic is another one, or shorter, than it was then.

        Retention does not shorten it.
        """
        if not receipt:
            return None
        was = Position.parse(receipt)
        if was.id == self._end.id:
            self.partitions = len(was.offsets)
        return missing_records(was, self._end)

    def close(self) -> None:
        """Release the producer; what a commit has returned from is durable already."""
        if self._producer is not None:
            # A failed commit has left rows behind: they are the next runner's, or come with a replay.
            with suppress(Fenced):
                self._producer.close()
            self._producer = None

    def _append(self, producer: Producer, table: pa.Table, first: int) -> None:
        topic = self._log.topic(self._topic)
        table = replay_order(table, replace(topic, partitions=self.partitions))
        crash.point("topic: before rows")
        if _has_deletions(table):
            producer.send_changes(table, sequence=first, partitions=self.partitions)
        elif table.num_rows:
            live = table.drop_columns(DELETED) if DELETED in table.schema.names else table
            producer.send_batch(live, sequence=first, partitions=self.partitions)
        crash.point("topic: sent")
        before, reached = self._end.offsets, producer.flush().offsets
        every = range(max(topic.partitions, len(before)))
        ends = {number: max(before.get(number, 0), reached.get(number, 0)) for number in every}
        self._end = replace(self._end, offsets=ends)
        crash.point("topic: flushed")

    def _mark(self, producer: Producer, watermark: int | None) -> None:
        """Append how far the node's clock has got, if it has moved."""
        if watermark is None or watermark == self._marked or self._log.topic(self._topic).event_time is None:
            return
        producer.mark(watermark)
        self._marked = watermark
        crash.point("topic: marked")


def missing_records(was: Position, end: Position) -> str | None:
    """Tell whether a topic is another one, or shorter, than when it ended at a position."""
    if was.id != end.id:
        return f'topic "{was.topic}" was deleted, and made again under its name'
    missing = sum(max(0, offset - end.offsets.get(number, 0)) for number, offset in was.offsets.items())
    return f'topic "{was.topic}" ends {missing:,} records earlier than it did' if missing else None


def _has_deletions(table: pa.Table) -> bool:
    return DELETED in table.schema.names and bool(pc.any(table[DELETED]).as_py())
