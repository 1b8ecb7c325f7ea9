"""What Kafka does for a producer: anonymous ones are idempotent, named ones transactional.

A named producer's sequence numbers are committed in the same transaction as its records, as
offsets of a group of its own, so the next instance of it knows exactly what is stored.

Invariant: after a failure nothing is sent again before it is known what the broker has.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from headwater import topic as topics
from headwater.errors import Fenced, HeadwaterError, LogUnavailable
from headwater.log.kafka import failures, groups, outgoing
from headwater.log.kafka.catalog import KafkaCatalog
from headwater.log.kafka.outgoing import Message
from headwater.log.kafka.scan import last_sequences
from headwater.log.record_batch import OutgoingBatch
from headwater.topic import Topic

FLUSH_SECONDS = 60.0
TRANSACTION_MS = 30_000
"""Records of a producer that died within a transaction hold readers up for this long at most."""
VISIBLE_SECONDS = 1.0
PRODUCER_GROUP = "__headwater.producer"


class KafkaAppender:
    """Appends the records of an anonymous producer."""

    def __init__(self, catalog: KafkaCatalog, name: str, id: str | None = None):
        known = catalog.get(name)
        self.id = id if id is not None else f"anonymous-{uuid.uuid4().hex}"
        self.last_sequence = -1
        self._catalog, self._name, self._topic_id = catalog, name, known.id
        self._config = catalog.cluster.config
        self._last: dict[int, int] = {}
        self._reached = catalog.cluster.ends(name, range(known.topic.partitions))
        self._client: Producer | None = None
        self._partitions = known.topic.partitions
        self._open()

    def topic(self) -> Topic:
        """Return the topic as it is declared now."""
        return topics.stored(self._catalog.recent(self._name, self._topic_id).topic)

    def encode(self, records: OutgoingBatch) -> None:
        """Do nothing: JSON is made under the interpreter's lock, so other threads would not help."""

    def append(self, records: OutgoingBatch, encoded: Sequence[None]) -> Mapping[int, int]:
        """Append durably; a failed append is completed when it is called again."""
        topic = self.topic()
        if self._client is None or topic.partitions != self._partitions:
            self._reopen()  # a client learns of new partitions late
            self._partitions = topic.partitions
        fresh = outgoing.unsent(records, self._last)
        reached = self._untouched(records, fresh)
        if len(fresh.batch):
            made = outgoing.messages(fresh, topic, self.id, self._catalog.encoder(topic))
            reached |= self._guarded(lambda: self._send(made, outgoing.newest(fresh)))
            self._last |= outgoing.newest(fresh)
            self._reached |= reached
        return reached

    def mark(self, before: int) -> None:
        """Append to every partition that this producer sends nothing older any more."""
        if self._client is None:
            self._reopen()
        made = outgoing.marks(self.id, before, self.topic().partitions)
        self._guarded(lambda: self._send(made, {}))

    def close(self) -> None:
        """Release the client; everything appended is durable already."""
        self._client = None

    def _open(self) -> None:
        with failures.translating_errors(self._config, f'open a producer of topic "{self._name}"'):
            self._client = Producer(self._config.producer())

    def _reopen(self) -> None:
        """Start again after a failure, from what the broker has."""
        found = last_sequences(self._config, self._name, self.id, self._span())
        self._last |= found
        self._open()

    def _span(self) -> dict[int, tuple[int, int]]:
        """Return where records of this instance can lie that it does not know of."""
        ends = self._catalog.cluster.ends(self._name, range(self.topic().partitions))
        return {partition: (self._reached.get(partition, 0), end) for partition, end in ends.items()}

    def _untouched(self, records: OutgoingBatch, fresh: OutgoingBatch) -> dict[int, int]:
        """Return the ends of partitions whose records are all stored already."""
        stored = outgoing.newest(records).keys() - outgoing.newest(fresh).keys()
        return self._catalog.cluster.ends(self._name, stored) if stored else {}

    def _guarded(self, send: Callable[[], dict[int, int]]) -> dict[int, int]:
        try:
            with failures.translating_errors(self._config, f'append to topic "{self._name}"'):
                return send()
        except Fenced:
            raise self._fenced() from None
        except HeadwaterError:
            self._client = None
            raise

    def _fenced(self) -> Fenced:
        return Fenced(
            f'producer "{self.id}" of topic "{self._name}" has been fenced',
            detail="a newer producer of the same id has started; nothing of the batch was stored",
            hint="let only one producer of an id run at a time",
        )

    def _send(self, made: Sequence[Message], newest: Mapping[int, int]) -> dict[int, int]:
        """Send and wait; ``newest`` are the sequence numbers that the partitions then have."""
        reached = self._produce(made)
        assert self._client is not None
        left = self._client.flush(FLUSH_SECONDS)
        if left:
            self._client.purge()
            raise LogUnavailable(f'Kafka did not acknowledge {left} records of topic "{self._name}"')
        reached.check()
        return reached.offsets

    def _produce(self, made: Sequence[Message]) -> _Deliveries:
        assert self._client is not None
        reached = _Deliveries()
        produce, name = self._client.produce, self._name
        for partition, key, value, headers in made:
            while True:
                try:
                    produce(name, value, key, partition, reached, headers=headers)
                    break
                except BufferError:
                    self._client.poll(0.05)
        return reached


class NamedAppender(KafkaAppender):
    """Appends the records of a named producer, each batch in one transaction."""

    def __init__(self, catalog: KafkaCatalog, name: str, id: str):
        self._instance = uuid.uuid4().hex
        self._group = f"{PRODUCER_GROUP}.{name}.{id}"
        super().__init__(catalog, name, id)
        self.last_sequence = max(self._last.values(), default=-1)

    def _open(self) -> None:
        """Shut out a predecessor of the same id, and learn how far it got."""
        registry = self._catalog.registry
        registry.refresh()
        known_before = registry.owner(self._topic_id, self.id) is not None
        registry.own(self._topic_id, self.id, self._instance)
        self._begin()
        if not self._last and known_before:
            # The broker forgets offsets after some days without use; the records still tell.
            ends = self._catalog.cluster.ends(self._name, range(self.topic().partitions))
            starts = self._catalog.cluster.starts(self._name, ends)
            span = {partition: (starts[partition], end) for partition, end in ends.items()}
            self._last = last_sequences(self._config, self._name, self.id, span)

    def _reopen(self) -> None:
        registry = self._catalog.registry
        registry.refresh()
        if registry.owner(self._topic_id, self.id) != self._instance:
            raise self._fenced()
        self._begin()

    def _begin(self) -> None:
        with failures.translating_errors(self._config, f'open producer "{self.id}" of topic "{self._name}"'):
            client = Producer(
                self._config.producer(**{"transactional.id": f"headwater.{self._name}.{self.id}",
                                         "transaction.timeout.ms": TRANSACTION_MS})
            )  # fmt: skip
            client.init_transactions(FLUSH_SECONDS)
            self._metadata, self._last = self._committed()
        self._client = client

    def _committed(self) -> tuple[Any, dict[int, int]]:
        """Return the handle of this producer's group, and the last sequence of each partition."""
        topic = self.topic()
        every = [TopicPartition(self._name, number) for number in range(topic.partitions)]
        group = Consumer(self._config.consumer(self._group))
        try:
            stored = group.committed(every, FLUSH_SECONDS)
            told = [place for place in stored if place.offset > 0 and groups.is_of(topic, place)]
            last = {place.partition: place.offset - 1 for place in told}
            return group.consumer_group_metadata(), last
        finally:
            group.close()

    def _send(self, made: Sequence[Message], newest: Mapping[int, int]) -> dict[int, int]:
        assert self._client is not None
        client = self._client
        try:
            client.begin_transaction()
            reached = self._produce(made)
            offsets = groups.places(self.topic(), {p: last + 1 for p, last in newest.items()})
            if offsets:
                client.send_offsets_to_transaction(offsets, self._metadata, FLUSH_SECONDS)
            self._commit(client)
        except KafkaException as error:
            if error.args[0].txn_requires_abort():
                client.abort_transaction(FLUSH_SECONDS)
            raise
        self._until_visible(reached.offsets)
        return reached.offsets

    def _until_visible(self, reached: Mapping[int, int]) -> None:
        """Wait for the broker's markers, so that who reads after this append sees it.

        Another producer's open transaction may hold them up; what was appended is durable anyway.
        """
        deadline = time.monotonic() + VISIBLE_SECONDS
        while time.monotonic() < deadline:
            ends = self._catalog.cluster.ends(self._name, reached)
            if all(ends[partition] >= offset for partition, offset in reached.items()):
                return
            time.sleep(0.002)

    def _commit(self, client: Producer) -> None:
        deadline = time.monotonic() + FLUSH_SECONDS
        while True:
            try:
                client.commit_transaction(FLUSH_SECONDS)
                return
            except KafkaException as error:
                if not error.args[0].retriable() or time.monotonic() > deadline:
                    raise


class _Deliveries:
    """Collects what the broker says of each message: the offsets reached, or the first failure."""

    def __init__(self) -> None:
        self.offsets: dict[int, int] = {}
        self._failed: KafkaError | None = None

    def __call__(self, error: KafkaError | None, message: Any) -> None:
        if error is None:
            self.offsets[message.partition()] = message.offset() + 1
        elif self._failed is None:
            self._failed = error

    def check(self) -> None:
        if self._failed is not None:
            raise KafkaException(self._failed)
