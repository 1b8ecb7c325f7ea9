"""What is captured of a table: its columns as they are declared, and the topics that they go to.

Invariant: the topic of a table is compacted by the table's key; that of its changes keeps every one of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

import pyarrow as pa
import pyarrow.compute as pc

from headwater import topic as topics
from headwater import topic_errors
from headwater.errors import TopicError
from headwater.log import Log
from headwater.pipeline.captured import COMMITTED
from headwater.schema import TIMESTAMP
from headwater.values.keys import key_bytes

CHANGES = ".changes"


@dataclass(frozen=True)
class CapturedTable:
    """A table of a database, and where its rows go."""

    table: str
    """Its name in the database."""
    topic: str
    schema: pa.Schema
    """The columns that are captured, without the time of the commit."""
    key: tuple[str, ...]
    event_time: str | None = None
    """The column that says from when on a row holds; the time of the commit if None."""
    history: bool = False
    """Whether every change is kept too, with the row before, in a topic of its own."""
    lateness: timedelta = timedelta()
    """How long its readers wait for a change after its time."""

    @property
    def timed(self) -> bool:
        """Whether the event time is that of the commit."""
        return self.event_time is None

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the table that are read."""
        return tuple(self.schema.names)

    @property
    def changes_topic(self) -> str:
        """The topic of every change."""
        return self.topic + CHANGES

    @property
    def topic_schema(self) -> pa.Schema:
        """The columns of the topic."""
        return self.schema if self.event_time else self.schema.append(pa.field(COMMITTED, TIMESTAMP))

    @property
    def changes_schema(self) -> pa.Schema:
        """The columns of the topic of changes: the key, what happened and when, the row before and after."""
        row = pa.struct([field.with_nullable(True) for field in self.schema])
        about = {"operation": pa.string(), "before": row, "after": row, COMMITTED: TIMESTAMP}
        where = {"position": pa.string(), "transaction": pa.string(), "index": pa.int64()}
        return pa.schema([*(self.schema.field(name) for name in self.key), *({**about, **where}).items()])

    def key_names(self, rows: pa.RecordBatch | pa.Table) -> pa.BinaryArray:
        """Return the bytes of each row's key as the topic has it; null where it does not fit."""
        return key_bytes([_cast(rows.column(name), self.schema.field(name).type) for name in self.key])

    def declare(self, log: Log) -> None:
        """Make its topics where they are missing, and refuse those that are otherwise."""
        time = self.event_time or COMMITTED
        self._declare(
            log,
            topics.create(self.topic, self.topic_schema, key=self.key, event_time=time, cleanup="compact"),
        )
        if self.history:
            self._declare(
                log,
                topics.create(self.changes_topic, self.changes_schema, key=self.key, event_time=COMMITTED),
            )

    def _declare(self, log: Log, declared: topics.Topic) -> None:
        if declared.name not in {topic.name for topic in log.topics()}:
            cleanup = declared.cleanup
            log.create_topic(
                declared.name,
                declared.schema,
                key=declared.key,
                event_time=declared.event_time,
                cleanup=cleanup,
            )
            return
        existing = log.topic(declared.name)
        if not topic_errors.same(existing, declared):
            raise TopicError(
                f'topic "{declared.name}" is not what table "{self.table}" is captured into',
                detail=topic_errors.different(existing, declared),
                hint="name another topic, or delete this one: it is filled anew from the database",
            )


def _cast(column: pa.Array | pa.ChunkedArray, to: pa.DataType) -> pa.Array:
    whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    try:
        return pc.cast(whole, to)
    except pa.ArrowInvalid:  # one by one: texts that have to be read, of which some cannot
        return pa.concat_arrays([_cast_or_null(whole.slice(row, 1), to) for row in range(len(whole))])


def _cast_or_null(value: pa.Array, to: pa.DataType) -> pa.Array:
    try:
        return pc.cast(value, to)
    except pa.ArrowInvalid:
        return pa.nulls(1, to)
