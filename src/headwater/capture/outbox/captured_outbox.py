"""What is captured of an outbox: a table whose rows are events, which an application writes with its data.

The transactional outbox: an event is written in the transaction that it tells of, so neither is there without
the other. Invariant: a row that is inserted becomes one record; what happens to it later is nobody's event.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cached_property

import pyarrow as pa

from headwater import topic as topics
from headwater import topic_errors
from headwater.errors import TopicError
from headwater.log import Log
from headwater.pipeline.captured import COMMITTED
from headwater.topic import Topic
from headwater.values import jsonl


@dataclass(frozen=True)
class CapturedOutbox:
    """A table of events in a database, and the topic that they go to."""

    table: str
    """Its name in the database."""
    declared: Topic
    """The topic, with what it stores."""
    event: str | None = None
    """The column that holds an event as a JSON object; without one, the table's columns are those of it."""
    headers: tuple[str, ...] = ()
    """Columns of the table that become headers of the record."""
    delete: bool = False
    """Whether rows are deleted from the table when the log has them."""
    lateness: timedelta = timedelta()
    """How much later than its time an event may come."""

    @property
    def topic(self) -> str:
        """The name of the topic."""
        return self.declared.name

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns of an event, without the time of the commit where that is its time."""
        return pa.schema(
            [each for each in self.declared.schema if not (each.name == COMMITTED and self.timed)]
        )

    @property
    def timed(self) -> bool:
        """Whether the event time is that of the commit."""
        return self.declared.event_time == COMMITTED

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The columns of the table that are read."""
        events = self.schema.names if self.event is None else [self.event]
        return tuple(dict.fromkeys([*events, *self.headers]))

    @cached_property
    def event_topic(self) -> Topic:
        """The topic as JSON is read for it: what a database adds is none of it."""
        key = [name for name in self.declared.key if name in self.schema.names]
        return topics.create(self.topic, self.schema, key=key)

    def declare(self, log: Log) -> None:
        """Make its topic where it is missing, and refuse one that is otherwise.

        How many partitions it has and how long records are kept is for whoever has made it to say.
        """
        wanted = self.declared
        if wanted.name not in {each.name for each in log.topics()}:
            log.create_topic(wanted.name, wanted.schema, key=wanted.key, event_time=wanted.event_time)
            return
        existing = log.topic(wanted.name)
        told = replace(
            wanted,
            partitions=existing.partitions,
            retention=existing.retention,
            retention_bytes=existing.retention_bytes,
            archive=existing.archive,
        )
        if not topic_errors.same(existing, told):
            raise TopicError(
                f'topic "{wanted.name}" is not what outbox "{self.table}" is captured into',
                detail=topic_errors.different(existing, told),
                hint="name another topic with topic=, or declare the source as this one is",
            )


def stored(declared: Topic) -> Topic:
    """Return a topic with what it stores alone: what is computed is of those who read it."""
    key = [name for name in declared.key if name not in declared.computed_names]
    return topics.create(declared.name, declared.schema, key=key, event_time=declared.stored_event_time)


def row_names(rows: pa.RecordBatch, key: Sequence[str]) -> list[bytes]:
    """Return the key of each row of a table, as JSON: ``{"id":7}``."""
    chosen = rows.select(list(key))
    return jsonl.encode(chosen, _key_topic(chosen.schema))


def named_rows(names: Sequence[bytes], key: pa.Schema) -> pa.RecordBatch:
    """Return the keys of which ``row_names`` has made the names, but for those that are not whole."""
    batch, _ = jsonl.decode(names, _key_topic(pa.schema([each.with_nullable(False) for each in key])))
    return batch


def _key_topic(schema: pa.Schema) -> Topic:
    return topics.create("row", schema)
