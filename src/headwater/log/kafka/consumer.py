"""A member of one of the broker's consumer groups.

Partitions move one by one (cooperative), offsets are committed by hand, and where nothing is
committed the start is resolved here, so that the broker never resets an offset in silence.

Invariant: a partition is read from its committed offset whenever it is taken over, so what was
not committed is delivered again, by whoever owns it next.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pyarrow as pa
from confluent_kafka import OFFSET_END, KafkaError, KafkaException, TopicPartition
from confluent_kafka import Consumer as Client

from headwater.errors import Fenced, HeadwaterError, OffsetLost, UsageError
from headwater.log.consumer import Consumer
from headwater.log.kafka import failures, groups, incoming, scan
from headwater.log.kafka.catalog import KafkaCatalog, KafkaTopic
from headwater.log.position import Extent, Position, check_position, check_within

JOIN_SECONDS = 10.0
COMMIT_SECONDS = 10.0
FEW = 1_000
"""With fewer messages waiting, ``poll`` asks for more before it returns a batch."""
_SESSION = {
    "session.timeout.ms": 10_000,
    "heartbeat.interval.ms": 1_000,
    "topic.metadata.refresh.interval.ms": 5_000,  # how soon new partitions are noticed
    "partition.assignment.strategy": "cooperative-sticky",
}


class KafkaConsumer(Consumer):
    """Reads the partitions that its group gives it."""

    def __init__(
        self,
        catalog: KafkaCatalog,
        known: KafkaTopic,
        group: str,
        *,
        start: Callable[[int], int | None],
        meta: bool,
    ):
        """``start`` returns the offset of a partition without a commit; None means the earliest."""
        self._catalog, self._first, self._group = catalog, known, group
        self._start, self._meta = start, meta
        self._config = catalog.cluster.config
        self._positions: dict[int, int] = {}
        self._delivered: dict[int, int] = {}
        self._pending: dict[int, list[Any]] = {}
        self._failed: dict[int, HeadwaterError] = {}
        self._unpinned: dict[int, int] = {}
        self._taken: list[int] = []
        self._committing: dict[int, int] = {}
        self._joined = self._closed = False
        self._join()

    def poll(self, timeout: float | None = None) -> pa.RecordBatch | None:
        """Return the next batch, or None after ``timeout`` seconds (None: wait for ever)."""
        deadline = None if timeout is None else time.monotonic() + timeout
        self._serve(0, more=sum(map(len, self._pending.values())) < FEW)
        while True:
            batch = self._next()
            if batch is not None:
                return batch
            left = 1.0 if deadline is None else deadline - time.monotonic()
            if left <= 0:
                return None
            self._serve(min(left, 1.0), more=True)

    def commit(self, position: Position | None = None) -> None:
        """Commit everything that ``poll`` has returned, or only up to a position.

        Raises ``Fenced`` if a partition has been lost, and commits nothing then.
        """
        self._check_open()
        topic = self._catalog.recent(self._name, self._first.id).topic
        if position is not None:
            check_position(position, topic)
        self._committing = dict(self._delivered if position is None else position.offsets)
        self._taken = []
        try:
            self._hear(0)  # of partitions that are given up, or have been taken away
            self._store()
        finally:
            self._committing = {}

    def assignment(self) -> tuple[int, ...]:
        """Return the partitions this member owns now."""
        self._serve(0)
        return tuple(sorted(self._positions))

    def position(self) -> Position:
        """Return the offsets after the last batch of each partition this member owns."""
        return Position(self._name, dict(sorted(self._positions.items())), self._first.id)

    def close(self) -> None:
        """Leave the group, so that others take over at once."""
        if not self._closed:
            self._closed = True
            self._client.close()

    @property
    def _name(self) -> str:
        return self._first.topic.name

    # The group

    def _join(self) -> None:
        with failures.translating_errors(self._config, f'join group "{self._group}"'):
            self._client = Client(self._config.consumer(self._group, **_SESSION))
            self._client.subscribe(
                [self._name], on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._lost
            )
        deadline = time.monotonic() + JOIN_SECONDS
        while not self._joined and time.monotonic() < deadline:
            self._serve(0.1)

    def _assigned(self, client: Client, partitions: list[TopicPartition]) -> None:
        self._joined = True
        if self._closed:
            return
        try:
            with failures.translating_errors(self._config, f'look up offsets of group "{self._group}"'):
                client.incremental_assign(self._placed(client, partitions))
        except HeadwaterError as error:  # raised by poll, not inside of the client
            self._failed |= dict.fromkeys((each.partition for each in partitions), error)
            self._park(client, partitions)

    def _park(self, client: Client, partitions: list[TopicPartition]) -> None:
        """Take partitions without reading them: left alone, the client would choose a place itself."""
        parked = [TopicPartition(self._name, each.partition, OFFSET_END) for each in partitions]
        client.incremental_assign(parked)
        client.pause(parked)

    def _placed(self, client: Client, partitions: list[TopicPartition]) -> list[TopicPartition]:
        """Return partitions at their committed offsets, or where the group is to start."""
        committed = client.committed(partitions, COMMIT_SECONDS) if partitions else []
        extents = self._catalog.cluster.extents(self._name, [p.partition for p in partitions])
        groups.check_identity(self._group, self._first.topic, committed)
        for each in committed:
            number, extent = each.partition, extents[each.partition]
            if each.offset < 0:
                each.offset = self._first_offset(number, extent.earliest)
            self._positions[number] = each.offset
            self._check_within(number, extent)
        return committed

    def _check_within(self, partition: int, extent: Extent) -> None:
        """Let ``poll`` tell where the place of a partition is none that it holds."""
        try:
            check_within(self._name, partition, self._positions[partition], extent)
        except OffsetLost as error:
            self._failed[partition] = error

    def _first_offset(self, partition: int, earliest: int) -> int:
        offset = self._start(partition)
        if offset is None:
            return earliest
        self._unpinned[partition] = offset
        return offset

    def _revoked(self, client: Client, partitions: list[TopicPartition]) -> None:
        """Give partitions up in good order: a commit under way is carried out first."""
        if self._committing:
            if self._try_store(self._committing) is None:
                self._stored()
            else:
                self._taken = sorted(self._committing)
        self._drop(client, partitions)

    def _lost(self, client: Client, partitions: list[TopicPartition]) -> None:
        """Hear that partitions were taken away because the group took this member for dead."""
        gone = {each.partition for each in partitions}
        self._taken = sorted(gone & (self._delivered.keys() | self._committing.keys()))
        self._drop(client, partitions)

    def _drop(self, client: Client, partitions: list[TopicPartition]) -> None:
        gone = {each.partition for each in partitions}
        for held in (self._pending, self._positions, self._delivered, self._failed, self._unpinned):
            for partition in gone & held.keys():
                del held[partition]
        if not self._closed:
            client.incremental_unassign(partitions)

    def _pin(self) -> None:
        """Commit a start that is not the earliest, lest the next owner resolve it to another place."""
        if self._unpinned and self._try_store(self._unpinned) is None:
            self._unpinned = {}

    def _store(self) -> None:
        """Carry out the commit under way, waiting while the group changes hands around it."""
        deadline = time.monotonic() + COMMIT_SECONDS
        while self._committing or self._taken:
            owned = self._positions.keys()
            if self._taken or not self._committing.keys() <= owned or time.monotonic() > deadline:
                raise self._fenced(self._taken or sorted(self._committing.keys() - owned or self._committing))
            error = self._try_store(self._committing)
            if error is None:
                self._stored()
            elif error.code() in failures.LOST_MEMBER | {KafkaError.REBALANCE_IN_PROGRESS}:
                # Of an old generation: either this member was taken for dead, which it is about
                # to hear, or the group is changing and it will belong to the new generation.
                self._hear(0.05)
            else:
                raise failures.translated(error, self._config, f'commit offsets of group "{self._group}"')

    def _stored(self) -> None:
        done, self._committing = self._committing, {}
        self._delivered = {number: o for number, o in self._delivered.items() if number not in done}

    def _try_store(self, offsets: dict[int, int]) -> KafkaError | None:
        places = groups.places(self._first.topic, offsets)
        try:
            stored = self._client.commit(offsets=places, asynchronous=False)
        except KafkaException as error:
            return error.args[0]  # type: ignore[no-any-return]
        return next((each.error for each in stored if each.error is not None), None)

    def _fenced(self, partitions: list[int]) -> Fenced:
        return Fenced(
            f'consumer of group "{self._group}" no longer owns partition {", ".join(map(str, partitions))}',
            detail="another member has taken over; nothing was committed",
            hint="go on polling: what was not committed is delivered to the new owner",
        )

    # The records

    def _serve(self, timeout: float, more: bool = False) -> None:
        self._check_open()
        self._hear(timeout, more)
        self._pin()

    def _hear(self, timeout: float, more: bool = False) -> None:
        """Let the client do its work for a while; keep what arrives, but ask for ``more`` only if wanted."""
        with failures.translating_errors(self._config, f'read topic "{self._name}"'):
            for message in scan.take(self._client, timeout, scan.MESSAGES if more else 1):
                if message.error() is None or scan.is_end(message):
                    self._keep(message)
                elif not scan.is_transient(message):
                    self._fail(message)

    def _check_open(self) -> None:
        if self._closed:
            raise UsageError(f'consumer of group "{self._group}" is closed')

    def _keep(self, message: Any) -> None:
        partition = message.partition()
        if partition in self._positions:
            self._pending.setdefault(partition, []).append(message)

    def _fail(self, message: Any) -> None:
        partition = message.partition()
        if message.error().code() in failures.LOST_OFFSET and partition in self._positions:
            self._check_within(partition, self._catalog.cluster.extents(self._name, [partition])[partition])
            if partition in self._failed:
                return
        raise scan.trouble(message, self._config, self._positions.get(partition, message.offset()))

    def _next(self) -> pa.RecordBatch | None:
        """Return a batch of the partition that has waited longest."""
        while self._pending:
            batch = self._decoded(next(iter(self._pending)))
            if batch is not None:
                return batch
        for error in self._failed.values():
            raise error
        return None

    def _decoded(self, partition: int) -> pa.RecordBatch | None:
        """Turn what waits of a partition into a batch; a message that does not fit is met again."""
        messages = self._pending[partition]
        records = incoming.records([message for message in messages if message.error() is None])
        known = self._catalog.recent(self._name, self._first.id)
        batch, error = incoming.decode(records, known, self._meta)
        if error is not None and not len(batch):
            raise error
        del self._pending[partition]
        if error is not None:
            self._pending[partition] = messages[messages.index(records[len(batch)]) :]
            self._advance(partition, records[len(batch) - 1].offset() + 1)
            return batch
        # The end of a partition may lie behind markers that are no records.
        self._advance(partition, max(m.offset() + (m.error() is None) for m in messages))
        return batch if len(batch) else None

    def _advance(self, partition: int, offset: int) -> None:
        if offset > self._positions[partition]:
            self._positions[partition] = self._delivered[partition] = offset
