"""What Kafka does for a producer: anonymous ones are idempotent, named ones transactional.

A named producer's sequence numbers are committed in the same transaction as its records, as
offsets of a group of its own, so the next instance of it knows exactly what is stored. A batch that takes
too long for one transaction is several, each with the numbers that it has reached.

Invariant: after a failure nothing is sent again before it is known what the broker has.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from headwater import topic as topics
from headwater.errors import Fenced, HeadwaterError, LogUnavailable
from headwater.log.kafka import failures, groups, outgoing
from headwater.log.kafka.catalog import KafkaCatalog
from headwater.log.kafka.config import MESSAGE_MS
from headwater.log.kafka.outgoing import OutgoingMessage
from headwater.log.kafka.pacing import Pace
from headwater.log.kafka.scan import last_sequences
from headwater.log.record_batch import OutgoingBatch
from headwater.topic import Topic

FLUSH_SECONDS = 60.0
TRANSACTION_MS = 30_000
"""Records of a producer that died within a transaction hold readers up for this long at most. The broker
aborts a transaction that takes longer, so none goes on for more than a third of it."""
ABORT_SECONDS = 5.0
VISIBLE_SECONDS = 1.0
PRODUCER_GROUP = "__headwater.producer"


class KafkaAppender:
    """Appends the records of an anonymous producer."""

    contiguous = False

    def __init__(self, catalog: KafkaCatalog, name: str, id: str | None = None):
        known = catalog.get(name)
        self.id = id if id is not None else f"anonymous-{uuid.uuid4().hex}"
        self.last_sequence = -1
        self._catalog, self._name, self._topic_id = catalog, name, known.id
        self._config = catalog.cluster.config
        self._last: dict[int, int] = {}
        self._reached = catalog.cluster.ends(name, range(known.topic.partitions))
        self._client: Producer | None = None
        self._pace = Pace()
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
            reached |= self._guarded(lambda: self._send(made, fresh))
            self._reached |= reached
        return reached

    def mark(self, before: int) -> None:
        """Append to every partition that this producer sends nothing older any more."""
        if self._client is None:
            self._reopen()
        made = outgoing.marks(self.id, before, self.topic().partitions)
        self._guarded(lambda: self._send(made, None))

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
        except HeadwaterError as error:
            self._drop_client()
            raise (self._fencing() if isinstance(error, Fenced) else error) from None

    def _drop_client(self) -> None:
        """Let go of a client that has failed, with what it still has to send."""
        if self._client is not None:
            self._client.purge()
        self._client = None
        self._pace.begin_anew()

    def _fencing(self) -> HeadwaterError:
        """Return the error for a producer that the broker no longer listens to."""
        return self._fenced()

    def _fenced(self) -> Fenced:
        return Fenced(
            f'producer "{self.id}" of topic "{self._name}" has been fenced',
            detail="a newer producer of the same id has started; nothing more of the batch was stored",
            hint="let only one producer of an id run at a time",
        )

    def _send(self, made: Sequence[OutgoingMessage], records: OutgoingBatch | None) -> dict[int, int]:
        """Send and wait; ``records`` are those that the messages are made of, if they are not marks."""
        sent = DeliveryReports()
        for piece in self._pace.pieces(made):
            self._produce(piece, sent)
        self._wait(sent)
        if records is not None:
            self._last |= outgoing.newest(records)
        return sent.offsets

    def _produce(self, piece: Sequence[OutgoingMessage], sent: DeliveryReports) -> None:
        """Give a piece to the client, and wait until the one before it is acknowledged."""
        assert self._client is not None
        produce, name = self._client.produce, self._name
        for partition, key, value, headers in piece:
            while True:
                try:
                    produce(name, value, key, partition, sent, headers=headers)
                    break
                except BufferError:
                    self._client.poll(0.05)
        self._wait(sent, len(piece))
        if sent.before:
            self._pace.took(sent.before, time.monotonic() - sent.since)
        sent.before, sent.since = piece, time.monotonic()

    def _wait(self, sent: DeliveryReports, but: int = 0) -> None:
        """Wait until everything is acknowledged, but for so many messages."""
        assert self._client is not None
        left, deadline = len(self._client), time.monotonic() + FLUSH_SECONDS
        while left > but:
            if but:
                self._client.poll(0.05)
            else:
                self._client.flush(0.5)
            sent.check()
            if len(self._client) < left:
                left, deadline = len(self._client), time.monotonic() + FLUSH_SECONDS
            elif time.monotonic() > deadline:
                raise LogUnavailable(f'Kafka did not acknowledge {left} records of topic "{self._name}"')
        sent.check()


class NamedAppender(KafkaAppender):
    """Appends the records of a named producer, each batch in one transaction, or a long one in several."""

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
        self._check_owner()
        self._begin()

    def _check_owner(self) -> None:
        """Refuse to go on where a newer instance has taken over."""
        registry = self._catalog.registry
        registry.refresh()
        if registry.owner(self._topic_id, self.id) != self._instance:
            raise self._fenced()

    def _fencing(self) -> HeadwaterError:
        """Return why the broker no longer listens: the broker itself does not tell the two apart."""
        self._check_owner()
        return LogUnavailable(
            f'a transaction of producer "{self.id}" of topic "{self._name}" was aborted by the broker',
            detail=f"it was open for more than {TRANSACTION_MS / 1000:.0f} seconds; nothing of it was stored",
            hint="send again: the process was stopped for that long, or the connection is very slow",
        )

    def _begin(self) -> None:
        with failures.translating_errors(self._config, f'open producer "{self.id}" of topic "{self._name}"'):
            client = Producer(
                self._config.producer(**{"transactional.id": f"headwater.{self._name}.{self.id}",
                                         "transaction.timeout.ms": TRANSACTION_MS,
                                         "message.timeout.ms": min(MESSAGE_MS, TRANSACTION_MS)})
            )  # fmt: skip
            client.init_transactions(FLUSH_SECONDS)
            self._metadata, self._last = self._committed()
        self._check_owner()  # a newer one may have been first: it is the one that goes on
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

    def _send(self, made: Sequence[OutgoingMessage], records: OutgoingBatch | None) -> dict[int, int]:
        assert self._client is not None
        done, reached = 0, dict[int, int]()
        try:
            while done < len(made):
                done = self._transact(self._client, made, records, done, reached)
        except KafkaException as error:
            if error.args[0].txn_requires_abort():
                with suppress(KafkaException):  # or else the next client does it, or the broker in its time
                    self._client.abort_transaction(ABORT_SECONDS)
            raise
        self._until_visible(reached)
        return reached

    def _transact(
        self,
        client: Producer,
        made: Sequence[OutgoingMessage],
        records: OutgoingBatch | None,
        first: int,
        reached: dict[int, int],
    ) -> int:
        """Send messages from an index on in one transaction, as many as it has time for; return the next."""
        end, sent = first, DeliveryReports()
        deadline = time.monotonic() + TRANSACTION_MS / 3000
        client.begin_transaction()
        for piece in self._pace.pieces(made, first):
            self._produce(piece, sent)
            end += len(piece)
            if time.monotonic() > deadline:
                break
        newest = {} if records is None else outgoing.newest(records, first, end)
        if newest:
            offsets = groups.places(self.topic(), {p: last + 1 for p, last in newest.items()})
            client.send_offsets_to_transaction(offsets, self._metadata, FLUSH_SECONDS)
        self._commit(client)
        self._last |= newest
        reached |= sent.offsets
        return end

    def _until_visible(self, reached: Mapping[int, int]) -> None:
        """Wait for the broker's markers, so that who reads after this append sees it.

        Another producer's open transaction may hold them up; what was appended is durable anyway.
        """
        deadline = time.monotonic() + VISIBLE_SECONDS
        with suppress(LogUnavailable):
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


class DeliveryReports:
    """Collects what the broker says of each message: the offsets reached, or the first failure."""

    def __init__(self) -> None:
        self.offsets: dict[int, int] = {}
        self.before: Sequence[OutgoingMessage] = ()
        """The piece that was given to the client last, and when the one before it was acknowledged."""
        self.since = time.monotonic()
        self._failed: KafkaError | None = None

    def __call__(self, error: KafkaError | None, message: Any) -> None:
        """Take the broker's word on one message."""
        if error is None:
            self.offsets[message.partition()] = message.offset() + 1
        elif self._failed is None:
            self._failed = error

    def check(self) -> None:
        """Raise the first failure, if there was one."""
        if self._failed is not None:
            raise KafkaException(self._failed)
