"""The one interface of every log, embedded or Kafka.

``tests/contract`` holds each implementation to it. Invariant: whatever a method promises here
holds on every backend, or the backend refuses the call with an error that says why.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self

import pyarrow as pa

from headwater.errors import TopicExists
from headwater.log import topic as topics
from headwater.log.position import Position, Start
from headwater.log.topic import Cleanup, Topic

if TYPE_CHECKING:
    from headwater.log.producer import Producer

OnFull = Literal["block", "drop", "error"]


@dataclass(frozen=True)
class PartitionInfo:
    """One partition as ``describe`` tells it."""

    partition: int
    earliest: int
    """First offset that can still be read, from the archive too."""
    end: int
    """Offset the next record will get."""
    size: int | None
    """Bytes on disk, without the archive; None where the backend does not tell."""
    segments: int | None
    oldest: datetime | None
    """When the oldest record still readable was received."""
    newest: datetime | None


@dataclass(frozen=True)
class TopicInfo:
    """A topic with its sizes, as ``describe`` tells it."""

    topic: Topic
    partitions: tuple[PartitionInfo, ...]
    rate: float
    """Records per second received lately (over the last minute at most)."""

    @property
    def records(self) -> int:
        """Offsets between the earliest and the end; compaction leaves fewer records."""
        return sum(p.end - p.earliest for p in self.partitions)

    @property
    def size(self) -> int | None:
        """Bytes on disk, where the backend tells."""
        known = [p.size for p in self.partitions if p.size is not None]
        return sum(known) if len(known) == len(self.partitions) else None


@dataclass(frozen=True)
class Lag:
    """How far a group is behind in one partition."""

    group: str
    topic: str
    partition: int
    committed: int
    end: int
    records: int
    """Records not yet committed."""
    behind: timedelta
    """Age of the oldest record not yet committed; zero when there is none."""


@dataclass(frozen=True)
class Finding:
    """Something ``verify`` found wrong."""

    topic: str
    partition: int
    problem: str


@dataclass(frozen=True)
class Verification:
    """What ``verify`` checked and what it found."""

    batches: int = 0
    records: int = 0
    bytes: int = 0
    findings: tuple[Finding, ...] = field(default=())

    @property
    def ok(self) -> bool:
        """Whether nothing was found wrong."""
        return not self.findings

    def __add__(self, other: Verification) -> Verification:
        return Verification(
            self.batches + other.batches,
            self.records + other.records,
            self.bytes + other.bytes,
            self.findings + other.findings,
        )


class Log(ABC):
    """A partitioned, append-only, durable event log."""

    url: str

    # Topics

    def create_topic(
        self,
        name: str,
        schema: str | pa.Schema,
        *,
        key: str | Sequence[str] = (),
        event_time: str | None = None,
        partitions: int = 1,
        retention: str | timedelta | None = None,
        retention_bytes: int | None = None,
        cleanup: Cleanup = "delete",
        archive: str | None = None,
    ) -> Topic:
        """Make a topic and return it.

        A program may declare its topics at every start: a topic that exists with the same
        declaration is returned as it is; with another one, ``TopicExists`` is raised.
        """
        topic = topics.create(
            name, schema, key=key, event_time=event_time, partitions=partitions, retention=retention,
            retention_bytes=retention_bytes, cleanup=cleanup, archive=archive,
        )  # fmt: skip
        try:
            return self._add(topic)
        except TopicExists:
            existing = self.topic(name)
            if topics.same(existing, topic):
                return existing
            raise

    @abstractmethod
    def _add(self, topic: Topic) -> Topic:
        """Make a topic that has been checked; ``TopicExists`` if there is one of that name."""

    @abstractmethod
    def topic(self, name: str) -> Topic:
        """Return a topic's declaration."""

    @abstractmethod
    def topics(self) -> list[Topic]:
        """Return every topic, by name."""

    @abstractmethod
    def describe(self, name: str) -> TopicInfo:
        """Return a topic with its sizes, rates, oldest and newest record."""

    @abstractmethod
    def alter_topic(self, name: str, **changes: Any) -> Topic:
        """Add nullable columns (``schema=``), or change partitions, retention, cleanup, archive."""

    @abstractmethod
    def delete_topic(self, name: str) -> None:
        """Remove a topic, its records, and what groups had committed for it."""

    # Records

    @abstractmethod
    def producer(
        self,
        topic: str,
        id: str | None = None,
        *,
        linger: str | timedelta = "20 milliseconds",
        buffer: int = 500_000,
        on_full: OnFull = "block",
    ) -> Producer:
        """Return a producer; one with an ``id`` fences its predecessor of the same id.

        ``buffer`` is in rows; when it is full, ``send`` follows ``on_full``.
        """

    @abstractmethod
    def read(
        self,
        topic: str,
        partition: int | None = None,
        start: Start = "earliest",
        end: Start = "latest",
        *,
        meta: bool = False,
        follow: bool = False,
    ) -> Iterator[pa.RecordBatch]:
        """Read records as Arrow batches, partition after partition, each in its order.

        ``end`` is exclusive and taken when the call is made; with ``follow`` the iterator goes on
        with records as they arrive and never ends. Compacted topics have a ``_deleted`` column;
        ``meta=True`` adds the columns of ``headwater.log.record.META``.
        """

    @abstractmethod
    def resolve(self, topic: str, to: Start) -> Position:
        """Return the offsets that a start stands for now, in every partition."""

    # Groups

    @abstractmethod
    def consumer(self, topic: str, group: str, *, start: Start = "earliest", meta: bool = False) -> Consumer:
        """Join a group and return its new member; ``start`` applies where nothing is committed."""

    @abstractmethod
    def groups(self) -> list[str]:
        """Return the names of all groups that have committed or have members."""

    @abstractmethod
    def lag(self, group: str) -> list[Lag]:
        """Return how far a group is behind, per topic and partition."""

    @abstractmethod
    def seek(self, group: str, topic: str, to: Start) -> Position:
        """Move a group's committed offsets and return them."""

    # Care

    @abstractmethod
    def compact(self, topic: str) -> None:
        """Apply the topic's cleanup now: retention, or compaction to the newest of each key."""

    @abstractmethod
    def verify(self, topic: str | None = None) -> Verification:
        """Check every checksum, and the sequence of every producer."""

    @abstractmethod
    def close(self) -> None:
        """Release files and connections; producers and consumers are closed on their own."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Consumer(ABC):
    """A member of a consumer group, iterated by batches.

    A batch holds records of one partition, in order. Nothing is committed until ``commit`` is
    called; after a crash, what was not committed is delivered again (at least once).
    """

    @abstractmethod
    def poll(self, timeout: float | None = None) -> pa.RecordBatch | None:
        """Return the next batch, or None after ``timeout`` seconds (None: wait for ever)."""

    @abstractmethod
    def commit(self, position: Position | None = None) -> None:
        """Commit everything that ``poll`` has returned, or only up to a position.

        Raises ``Fenced`` if a partition has been lost, and commits nothing then.
        """

    @abstractmethod
    def assignment(self) -> tuple[int, ...]:
        """Return the partitions this member owns now."""

    @abstractmethod
    def position(self) -> Position:
        """Return the offsets after the last batch of each partition this member owns."""

    @abstractmethod
    def close(self) -> None:
        """Leave the group, so that others take over at once."""

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        while True:
            batch = self.poll()
            if batch is not None:
                yield batch

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


Headers = Mapping[str, bytes | str]
