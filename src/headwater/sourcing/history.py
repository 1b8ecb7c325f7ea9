"""The history of one aggregate, with the state after each event: for those who only look.

Reading it opens no writer, so on Kafka nobody is fenced by who looks. Invariant: the state after the last
event is the one on which the next command would be decided.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Protocol

import pyarrow.compute as pc

from headwater.durations import micros
from headwater.log.interface import Log
from headwater.sourcing.event_schema import EventSchema
from headwater.sourcing.fold import Fold
from headwater.sourcing.reply import RecordedEvent
from headwater.values.keys import partition_of


class Foldable(Protocol):
    """What is needed of a decider to read a history."""

    name: str
    schema: EventSchema
    fold: Fold


def history(decider: Foldable, log: Log, key: str) -> Iterator[RecordedEvent]:
    """Yield the events of an aggregate with when and why they came, and the state after each.

    - ``decider``: of the aggregate.
    - ``log``: where its events are; the records of the key's partition are read.
    - ``key``: of the aggregate.

    >>> import headwater
    >>> from headwater.sourcing import unique
    >>> usernames = unique("username")
    >>> with headwater.open("memory:") as log, usernames.open(log) as names:
    ...     reply = names.claim("ada", owner="user-1")
    ...     [each.event for each in history(usernames.decider, log, "ada")]
    [Claimed(owner='user-1')]
    """
    topic = log.topic(decider.name)
    batches = log.read(topic.name, partition_of(key.encode(), topic.partitions), meta=True)
    rows = (
        row
        for batch in batches
        for row in batch.filter(pc.equal(batch.column("key"), key)).to_pylist(maps_as_pydicts="strict")
    )
    return recorded_events(rows, decider.fold, decider.schema)


def recorded_events(
    rows: Iterable[Mapping[str, Any]], fold: Fold, schema: EventSchema
) -> Iterator[RecordedEvent]:
    """Yield the events of rows of one aggregate, from its first on."""
    folded = fold.beginning
    for row in rows:
        at, offset = row["recorded_at"], row["_offset"]
        for event in schema.events(row):
            folded = fold.events(folded, [event], micros(at), offset)
            yield RecordedEvent(event, folded.state, offset + 1, at, row["command"], row["request_id"])
