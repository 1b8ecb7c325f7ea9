"""A derived topic: a node's results go back to the log, where other nodes and programs read them.

The log's own numbers make it effectively once: row ``i`` of batch ``n``, in the order of
``headwater.sinks.arrangement``, has the sequence number ``(n << 32) + i``, and a log leaves out a number
it has from the same producer. Invariant: after a commit the topic has every row of the batch once,
however often the batch was replayed, and in whichever order its rows came.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from headwater.errors import Fenced, RowError, UsageError
from headwater.log.free_json import Written
from headwater.log.interface import Log
from headwater.log.position import Position
from headwater.log.producer import Producer
from headwater.log.rows import from_data
from headwater.log.topic import Topic
from headwater.schema import is_variant
from headwater.sinks import crash
from headwater.sinks.arrangement import arranged
from headwater.sinks.fitting import DELETED
from headwater.sinks.sink import Batch, Sink

_ROW_BITS = 32


class TopicSink(Sink):
    """Appends a node's results to a topic, as the producer ``producer_id``.

    Rows of one key keep their order, and those of a topic with one partition all do. In a compacted
    topic a row whose ``_deleted`` is true becomes a tombstone; other topics refuse deletions. The node's
    clock is appended as a mark where the topic has an event time, so that time goes on downstream though
    nothing is emitted.

    A batch is visible at once within a partition, not across partitions, and one with deletions only
    up to 65,536 rows. The log tells no more than the newest sequence number, so ``begin`` names the
    batch before the newest one that has left a row there: that one may lack a part, and a batch
    without rows leaves nothing. Replaying either is harmless.

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

    def __init__(self, log: Log, topic: str, producer_id: str):
        self._log, self._topic, self._id = log, topic, producer_id
        self._producer: Producer | None = None
        self._there = -1
        self._committed = -1
        self._marked: int | None = None
        self._end = Position(topic)

    def begin(self) -> int:
        """Take over as the producer; return the last batch that is known to be whole, or -1."""
        if self._producer is not None:
            self.close()
        # Rows and tombstones that are sent one by one wait for the flush, to be appended together.
        self._producer = self._log.producer(self._topic, id=self._id, linger="1 hour", buffer=1 << 40)
        self._there = self._producer.sequence - 1
        self._end = self._log.resolve(self._topic, "latest")
        return max(-1, (self._there >> _ROW_BITS) - 1)

    def commit(self, batch: Batch) -> bool:
        """Append a batch; return False if its last row was there before, and then only what lacked."""
        if self._producer is None:
            raise UsageError(f'sink of topic "{self._topic}" has not begun', hint="call begin() first")
        if batch.number <= self._committed:
            return False
        first = batch.number << _ROW_BITS
        self._append(self._producer, batch.rows, first)
        self._mark(self._producer, batch.clock)
        self._committed = batch.number
        return not first <= first + batch.rows.num_rows - 1 <= self._there

    def receipt(self) -> str:
        """Return where the topic ends, which has an identity of its own."""
        return str(self._end)

    def lost(self, receipt: str) -> str | None:
        """Tell whether the topic is another one, or shorter, than it was; retention does not shorten it."""
        was = Position.parse(receipt) if receipt else self._end
        if was.id != self._end.id:
            return f'topic "{self._topic}" was deleted, and made again under its name'
        missing = sum(max(0, o - self._end.offsets.get(p, 0)) for p, o in was.offsets.items())
        return f'topic "{self._topic}" ends {missing:,} records earlier than it did' if missing else None

    def close(self) -> None:
        """Release the producer; what a commit has returned from is durable already."""
        if self._producer is not None:
            # A failed commit has left rows behind: they are the next runner's, or come with a replay.
            with suppress(Fenced):
                self._producer.close()
            self._producer = None

    def _append(self, producer: Producer, table: pa.Table, first: int) -> None:
        topic = self._log.topic(self._topic)
        table = arranged(table, topic)
        rows = _live(table, topic)
        crash.point("topic: before rows")
        if rows is None:
            _send_mixed(producer, table, topic, first)
        elif rows.num_rows:
            producer.send_batch(rows, sequence=first)
        crash.point("topic: sent")
        reached = producer.flush().offsets.items()
        ends = {**self._end.offsets, **{p: max(o, self._end.offsets.get(p, 0)) for p, o in reached}}
        self._end = replace(self._end, offsets=ends)
        crash.point("topic: flushed")

    def _mark(self, producer: Producer, clock: int | None) -> None:
        """Append how far the node's clock has got, if it has moved."""
        if clock is None or clock == self._marked or self._log.topic(self._topic).event_time is None:
            return
        producer.mark(clock)
        self._marked = clock
        crash.point("topic: marked")


def _live(table: pa.Table, topic: Topic) -> pa.Table | None:
    """Return the rows if none of them is a deletion, else None."""
    if DELETED not in table.schema.names or not table.num_rows:
        return table
    if not pc.any(table[DELETED]).as_py():
        return table.drop_columns(DELETED)
    if topic.compacted:
        return None
    raise UsageError(
        f'topic "{topic.name}" is not compacted, so nothing in it can be deleted by key',
        hint='create it with cleanup="compact"',
    )


def _send_mixed(producer: Producer, table: pa.Table, topic: Topic, first: int) -> None:
    """Send rows and tombstones in their order, all of them checked before the first is sent."""
    deleted = pc.fill_null(table[DELETED], False)
    for name in topic.key:
        _check_key(table, name, topic)
    removed = table.filter(deleted)
    keys = iter(removed.select(list(topic.key)).to_pylist())
    times = iter(_times(removed, topic.event_time))
    rows = iter(_rows(table.filter(pc.invert(deleted)).drop_columns(DELETED), topic))
    for number, gone in enumerate(deleted.to_pylist(), first):
        if gone:
            producer.delete(next(keys), occurred=next(times), sequence=number)
        else:
            producer.send(next(rows), sequence=number)


def _times(table: pa.Table, event_time: str | None) -> list[datetime | None]:
    """Return when each deletion happened, where it tells."""
    if event_time is None or event_time not in table.schema.names:
        return [None] * table.num_rows
    return list(table[event_time].to_pylist())


def _rows(table: pa.Table, topic: Topic) -> list[dict[str, Any]]:
    rows = [row for batch in from_data(table, topic) for row in batch.to_pylist()]
    free = [field.name for field in topic.schema if is_variant(field)]
    for row in rows if free else ():
        row.update({name: Written(row[name]) for name in free if row[name] is not None})
    return rows


def _check_key(table: pa.Table, name: str, topic: Topic) -> None:
    if name not in table.schema.names:
        raise RowError(f'batch for topic "{topic.name}" lacks key column "{name}"')
    if table[name].null_count:
        row = pc.index(table[name].is_null(), True).as_py()
        raise RowError(f'key column "{name}" of topic "{topic.name}" is null', row=row)
