"""Messages of a queue into a topic, each once: a queue as the source of a pipeline, which reads that topic.

A message is acknowledged when its record is durable. A process that dies in between leaves messages that come
again; their records are the newest of this way in, and name where they come from, so they are found there and
not stored again. Invariant: at any time the messages of one batch at most are stored and not acknowledged. A
power loss can take acknowledgements of earlier ones, too: of as many as ``KNOWN`` a repeat is found.
"""

from __future__ import annotations

import threading
from collections.abc import Container, Sequence
from contextlib import suppress

import pyarrow as pa

from headwater import record
from headwater.errors import Fenced, RowError, TopicError, UnknownTopic
from headwater.ingest.checkpoints import producer_id
from headwater.ingest.ingest import Ingest
from headwater.ingest.retry import retry_while_away
from headwater.log import Log, Message, Producer, Queue, Topic

ORIGIN = "headwater.origin"
"""The header that says which message a record comes from."""
BATCH = 500
WAIT_SECONDS = 0.5
KNOWN = 10_000
"""Records of a partition that are looked at for messages that were stored before."""


class QueueMessages(Ingest):
    """Moves messages of a group's queue into a topic."""

    def __init__(self, log: Log, name: str, topic: str, source: tuple[str, str]):
        self._source, self._topic = source, _declared(log, topic, log.topic(source[0]))
        super().__init__(log, name, f"queue:{source[0]}?group={source[1]}")

    def _run(self, stop: threading.Event) -> None:
        with (
            self.log.producer(self._topic.name, id=producer_id(self.name)) as producer,
            self.log.queue(*self._source) as queue,
        ):
            stored = dict.fromkeys(self._stored())  # in their order, for the oldest are forgotten
            settled = queue._settle(stored)  # or one that was delivered for the last time would be dead, too
            self.counts.add(messages=settled, repeated=settled)
            while not stop.is_set():
                messages = retry_while_away(lambda: queue.receive(BATCH, timeout=WAIT_SECONDS), stop)
                if messages:
                    self._move(messages, stored, producer, stop)
                    _acknowledge(queue, messages)
                    stored.update((message.id, None) for message in messages)
                    for old in list(stored)[:-KNOWN]:
                        del stored[old]
                self.checkpoint()

    def _move(
        self, messages: list[Message], stored: Container[str], producer: Producer, stop: threading.Event
    ) -> None:
        """Store messages that are new; one that does not fit becomes a dead letter, and is taken out."""
        new = [message for message in messages if message.id not in stored]
        self.counts.add(messages=len(messages), repeated=len(messages) - len(new))
        for message in self._store_fitting(new, producer, stop):
            messages.remove(message)
            self.counts.add(dead=1)

    def _store_fitting(
        self, messages: Sequence[Message], producer: Producer, stop: threading.Event
    ) -> list[Message]:
        """Store what fits, reject the others, which are found by halves, and return those."""
        try:
            self._store(messages, producer, stop)
            return []
        except (RowError, pa.ArrowException) as error:
            if len(messages) == 1:
                messages[0].reject(f"it does not fit topic {self._topic.name}: {error}")
                return [messages[0]]
        half = len(messages) // 2
        parts = (messages[:half], messages[half:])
        return [each for part in parts for each in self._store_fitting(part, producer, stop)]

    def _store(self, messages: Sequence[Message], producer: Producer, stop: threading.Event) -> None:
        if not messages:
            return
        schema = pa.schema([each.with_nullable(True) for each in self._topic.schema])
        headers = [[*each.headers.items(), (ORIGIN, each.id.encode())] for each in messages]
        rows = pa.Table.from_pylist([each.value for each in messages], schema=schema)
        table = rows.append_column("_headers", pa.array(headers, record.HEADERS))
        retry_while_away(lambda: producer.append_changes([table]), stop)
        self.counts.add(records=len(messages))

    def _stored(self) -> set[str]:
        """Return which messages the newest records of this way in come from."""
        ends, found = self.log.resolve(self._topic.name, "latest").offsets, set[str]()
        starts = self.log.resolve(self._topic.name, "earliest").offsets
        for number, end in ends.items():
            first = max(starts[number], end - KNOWN)
            for batch in self.log.read(self._topic.name, number, first, end, meta=True):
                for headers in batch.column("_headers").to_pylist():
                    origin = dict(headers or ()).get(ORIGIN)
                    if origin is not None:
                        found.add(origin.decode())
        return found


def _acknowledge(queue: Queue, messages: Sequence[Message]) -> None:
    with suppress(Fenced):  # it took too long: those come again, and are found to be stored
        queue.ack(messages)


def _declared(log: Log, name: str, source: Topic) -> Topic:
    """Return the topic that messages go to: the one that is there, if it has their columns, or a new one."""
    try:
        topic = log.topic(name)
    except UnknownTopic:
        return log.create_topic(name, source.schema, key=source.key, event_time=source.event_time)
    missing = [each for each in source.schema.names if each not in topic.schema.names]
    if missing:
        raise TopicError(
            f'topic "{name}" has no column "{missing[0]}"',
            detail=f'messages of topic "{source.name}" have it',
            hint="name another topic with --topic: one that is not there is made",
        )
    return topic
