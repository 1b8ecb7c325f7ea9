"""The embedded log behind the common interface: it wires topics, partitions, groups and care.

Layout of the directory::

    headwater.json                 the format's version
    state.db                       groups, committed offsets, producers' epochs (SQLite)
    groups/GROUP@TOPIC/            one locked file per living member
    topics/NAME/topic.json         the declaration
    topics/NAME/PARTITION/         segments (*.log, *.idx), head, producers, lock

Invariant: reading opens files for reading only; a log in a read-only place can be read.
"""

from __future__ import annotations

import fcntl
import logging
import os
import shutil
import tempfile
import threading
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa

from headwater import clock
from headwater.errors import HeadwaterError, UsageError
from headwater.log import topic as topics
from headwater.log.embedded import archive, compaction, head, retention, segment, times, verify
from headwater.log.embedded.appender import EmbeddedAppender
from headwater.log.embedded.catalog import Catalog, Stored, unwritable
from headwater.log.embedded.consumer import EmbeddedConsumer
from headwater.log.embedded.groups import Member, State
from headwater.log.embedded.head import Head
from headwater.log.embedded.partition import SEGMENT_BYTES, Partition
from headwater.log.embedded.stream import FAR, RecordReader
from headwater.log.embedded.wakeup import Wakeup
from headwater.log.interface import Lag, Log, OnFull, PartitionInfo, TopicInfo, Verification
from headwater.log.position import Position, Start
from headwater.log.producer import Producer
from headwater.log.topic import Cleanup, Topic

Durability = Literal["fsync", "os"]
FOLLOW_SECONDS = 1.0
_log = logging.getLogger("headwater")


class EmbeddedLog(Log):
    """A log in a directory."""

    def __init__(self, root: Path, *, durability: Durability = "fsync", segment_bytes: int = SEGMENT_BYTES):
        if durability not in ("fsync", "os"):
            raise UsageError(f'durability is "fsync" or "os", not "{durability}"')
        self.root = root
        self.url = f"file:{root}"
        self.durability = durability
        self._segment_bytes = segment_bytes
        self._catalog = Catalog(root)
        self._opened_state: State | None = None
        self._recovered: set[Path] = set()
        self._caring: set[threading.Thread] = set()

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
        """Make a topic and return it."""
        topic = topics.create(
            name, schema, key=key, event_time=event_time, partitions=partitions, retention=retention,
            retention_bytes=retention_bytes, cleanup=cleanup, archive=archive,
        )  # fmt: skip
        return self._catalog.add(topic).topic

    def topic(self, name: str) -> Topic:
        """Return a topic's declaration."""
        return self._catalog.get(name).topic

    def topics(self) -> list[Topic]:
        """Return every topic, by name."""
        return [self._catalog.get(name).topic for name in self._catalog.names()]

    def describe(self, name: str) -> TopicInfo:
        """Return a topic with its sizes, rates, oldest and newest record."""
        stored = self._catalog.get(name)
        every = range(stored.topic.partitions)
        rate = sum(self._rate(stored, number) for number in every)
        return TopicInfo(stored.topic, tuple(self._describe(stored, number) for number in every), rate)

    def alter_topic(self, name: str, **changes: Any) -> Topic:
        """Add nullable columns, or change partitions, retention, cleanup, archive."""
        return self._catalog.change(name, changes).topic

    def delete_topic(self, name: str) -> None:
        """Remove a topic, its records and archive, and what groups had committed for it."""
        stored = self._catalog.remove(name)
        self._state.forget(stored.id)
        for place in (self.root / "groups").glob(f"*@{stored.id}"):
            shutil.rmtree(place, ignore_errors=True)
        if stored.topic.archive is not None:
            shutil.rmtree(self.root / stored.topic.archive / name, ignore_errors=True)

    # Records

    def producer(
        self,
        topic: str,
        id: str | None = None,
        *,
        linger: str | timedelta = "20 milliseconds",
        buffer: int = 500_000,
        on_full: OnFull = "block",
    ) -> Producer:
        """Return a producer; one with an ``id`` fences its predecessor of the same id."""
        stored = self._catalog.get(topic)
        if id is not None and not 0 < len(id.encode()) <= 200:
            raise UsageError("a producer's id has 1 to 200 bytes")
        epoch = self._state.next_epoch(stored.id, id) if id is not None else 0
        appender = EmbeddedAppender(
            id if id is not None else f"anonymous-{uuid.uuid4().hex}",
            epoch,
            lambda: self._same(stored).topic,
            lambda _, number: self._partition(stored, number),
        )
        self._care_for(stored)
        return Producer(appender, linger=_linger(linger), buffer=buffer, on_full=on_full)

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
        """Read records as Arrow batches, partition after partition, each in its order."""
        stored = self._catalog.get(topic)
        numbers = range(stored.topic.partitions) if partition is None else [partition]
        if partition is not None and not 0 <= partition < stored.topic.partitions:
            raise UsageError(
                f'topic "{topic}" has no partition {partition}',
                hint=f"it has {stored.topic.partitions}, from 0 on",
            )
        first = self.resolve(topic, start).offsets
        last = {} if follow else self.resolve(topic, end).offsets
        readers = [self._reader(stored, number, first[number], meta) for number in numbers]
        if follow:
            return self._follow(stored, readers, meta, every=partition is None)
        return _bounded(readers, last)

    def resolve(self, topic: str, to: Start) -> Position:
        """Return the offsets that a start stands for now, in every partition."""
        stored = self._catalog.get(topic)
        every = range(stored.topic.partitions)
        return Position(topic, {number: self._resolve(stored, number, to) for number in every})

    # Groups

    def consumer(
        self, topic: str, group: str, *, start: Start = "earliest", meta: bool = False
    ) -> EmbeddedConsumer:
        """Join a group and return its new member."""
        stored = self._catalog.get(topic)
        topics.check_name("group", group)
        directory = self._members(stored, group)
        try:
            member = Member(
                self._state, directory, group, stored.id, lambda: self._same(stored).topic.partitions
            )
        except OSError as error:
            raise unwritable(self.root, error) from None
        return EmbeddedConsumer(
            lambda: self._same(stored),
            member,
            lambda: self._state.committed(group, stored.id),
            lambda number, offset: self._reader(
                stored, number, self._resolve(stored, number, start) if offset is None else offset, meta
            ),
        )

    def groups(self) -> list[str]:
        """Return the names of all groups that have committed or have members."""
        rows = self._state.rows("SELECT grp FROM offsets UNION SELECT grp FROM members ORDER BY grp")
        return [str(row[0]) for row in rows]

    def lag(self, group: str) -> list[Lag]:
        """Return how far a group is behind, per topic and partition."""
        found = []
        for name in self._catalog.names():
            stored = self._catalog.get(name)
            committed = self._state.committed(group, stored.id)
            if committed or self._has_members(group, stored):
                found += [self._lag(group, stored, n, committed) for n in range(stored.topic.partitions)]
        if not found:
            raise UsageError(f'no group "{group}"', hint=_known("groups", self.groups()))
        return found

    def seek(self, group: str, topic: str, to: Start) -> Position:
        """Move a group's committed offsets and return them; living members start there again."""
        stored = self._catalog.get(topic)
        topics.check_name("group", group)
        place = self.resolve(topic, to)
        self._state.move(group, stored.id, place.offsets)
        directory = self._members(stored, group)
        if directory.is_dir():
            (directory / "changed").write_bytes(b"")
        return place

    # Care

    def compact(self, topic: str) -> None:
        """Apply the topic's cleanup now: retention, or compaction to the newest of each key."""
        stored = self._catalog.get(topic)
        for number in range(stored.topic.partitions):
            self._care(stored, number, thorough=True)

    def verify(self, topic: str | None = None) -> Verification:
        """Check every checksum, and the sequence of every producer."""
        total = Verification()
        for name in [topic] if topic is not None else self._catalog.names():
            stored = self._catalog.get(name)
            for number in range(stored.topic.partitions):
                one = verify.verify_partition(name, number, self._directory(stored, number))
                total = Verification(
                    total.batches + one.batches, total.records + one.records,
                    total.bytes + one.bytes, total.findings + one.findings,
                )  # fmt: skip
        return total

    def close(self) -> None:
        """Wait for care under way and release the state."""
        for thread in list(self._caring):
            thread.join()
        if self._opened_state is not None:
            self._opened_state.close()
            self._opened_state = None

    # Inside

    @property
    def _state(self) -> State:
        if self._opened_state is None:
            self._catalog.prepare()
            self._opened_state = State(self.root / "state.db")
        return self._opened_state

    def _same(self, stored: Stored) -> Stored:
        """Return the topic as declared now, if it is still the one that was opened."""
        now = self._catalog.get(stored.topic.name)
        if now.id != stored.id:
            raise topics.unknown(stored.topic.name, ())
        return now

    def _partition(self, stored: Stored, number: int, on_roll: bool = True) -> Partition:
        return Partition(
            stored.partition(number),
            fsync=self.durability == "fsync",
            segment_bytes=self._segment_bytes,
            on_roll=(lambda: self._care_for(stored)) if on_roll else None,
        )

    def _directory(self, stored: Stored, number: int) -> Path:
        """Return a partition's directory, brought up to date after a power loss."""
        path = stored.partition(number)
        if path not in self._recovered:
            with open(path / "head", "rb") as file:
                written = head.read(file.fileno())
                if (written is None or not written.since_boot) and os.access(path, os.W_OK):
                    partition = self._partition(stored, number, on_roll=False)
                    partition.recover()
                    partition.close()
            self._recovered.add(path)
        return path

    def _head(self, stored: Stored, number: int) -> Head:
        with open(self._directory(stored, number) / "head", "rb") as file:
            written = head.read(file.fileno())
            return written.head if written else Head(0, 0, 0, 0)

    def _reader(self, stored: Stored, number: int, offset: int, meta: bool) -> RecordReader:
        self._directory(stored, number)
        return RecordReader(self.root, lambda: self._same(stored), number, offset, meta)

    def _earliest(self, stored: Stored, number: int) -> int:
        archived = archive.listing(archive.directory(self.root, stored.topic, number))
        segments = segment.listing(stored.partition(number))
        found = [archived[0].base] if archived else [s.base for s in segments[:1]]
        return found[0] if found else self._head(stored, number).end

    def _resolve(self, stored: Stored, number: int, to: Start) -> int:
        if isinstance(to, Position):
            return to.offsets.get(number, 0)
        if isinstance(to, datetime):
            return self._offset_at(stored, number, clock.micros(to))
        if to == "earliest":
            return self._earliest(stored, number)
        return self._head(stored, number).end if to == "latest" else int(to)

    def _offset_at(self, stored: Stored, number: int, received: int) -> int:
        for each in archive.listing(archive.directory(self.root, stored.topic, number)):
            if archive.received(each)[1] >= received:
                return archive.offset_at(each, received)
        return times.offset_at(stored.partition(number), self._head(stored, number), received)

    def _describe(self, stored: Stored, number: int) -> PartitionInfo:
        published = self._head(stored, number)
        segments = segment.listing(stored.partition(number))
        archived = archive.listing(archive.directory(self.root, stored.topic, number))
        oldest = [archive.received(archived[0])[0]] if archived else map(times.first_received, segments)
        first = next((clock.instant(at) for at in oldest if at is not None), None)
        return PartitionInfo(
            partition=number,
            earliest=self._earliest(stored, number),
            end=published.end,
            size=sum(os.stat(s.path).st_size for s in segments),
            segments=len(segments),
            oldest=first,
            newest=clock.instant(published.received) if first is not None else None,
        )

    def _rate(self, stored: Stored, number: int) -> float:
        published = self._head(stored, number)
        minute_ago = clock.now() - 60_000_000
        since = times.offset_at(stored.partition(number), published, minute_ago)
        return (published.end - since) / 60

    def _lag(self, group: str, stored: Stored, number: int, committed: dict[int, int]) -> Lag:
        end = self._head(stored, number).end
        earliest = self._earliest(stored, number)
        done = committed.get(number, earliest)
        behind = timedelta()
        if done < end:
            behind = self._age(stored, number, max(done, earliest))
        return Lag(group, stored.topic.name, number, done, end, max(0, end - done), behind)

    def _age(self, stored: Stored, number: int, offset: int) -> timedelta:
        """Return how long ago the record at an offset, or the next one after it, was received."""
        source = self._reader(stored, number, offset, meta=True)
        try:
            batch = source.next()
        finally:
            source.close()
        if batch is None:
            return timedelta()
        received: datetime = batch.column("_received")[0].as_py()
        return clock.instant(clock.now()) - received

    def _members(self, stored: Stored, group: str) -> Path:
        return self.root / "groups" / f"{group}@{stored.id}"

    def _has_members(self, group: str, stored: Stored) -> bool:
        query = "SELECT 1 FROM members WHERE grp = ? AND topic = ? LIMIT 1"
        return bool(self._state.rows(query, (group, stored.id)))

    def _follow(
        self, stored: Stored, readers: list[RecordReader], meta: bool, every: bool
    ) -> Iterator[pa.RecordBatch]:
        """Yield records as they arrive; with ``every``, also of partitions that are added later."""
        wakeup = Wakeup([stored.partition(r.number) / "head" for r in readers])
        try:
            while True:
                found = [batch for each in readers if (batch := each.next()) is not None]
                yield from found
                added = range(len(readers), self._same(stored).topic.partitions) if every else ()
                if added:
                    readers += [self._reader(stored, number, 0, meta) for number in added]
                    wakeup.close()
                    wakeup = Wakeup([stored.partition(r.number) / "head" for r in readers])
                elif not found:
                    wakeup.wait(FOLLOW_SECONDS)
        finally:
            wakeup.close()
            for each in readers:
                each.close()

    def _care_for(self, stored: Stored) -> None:
        """Apply cleanup beside the appender, in a thread of its own."""
        topic = stored.topic
        if topic.retention is None and topic.retention_bytes is None and not topic.compacted:
            return
        thread = threading.Thread(
            target=self._care_in_turn, args=(stored,), name="headwater-care", daemon=True
        )
        self._caring.add(thread)
        thread.start()

    def _care_in_turn(self, stored: Stored) -> None:
        try:
            for number in range(stored.topic.partitions):
                self._care(stored, number, thorough=False)
        except (HeadwaterError, OSError) as error:  # appending goes on; the next roll tries again
            _log.warning('cleanup of topic "%s" failed: %s', stored.topic.name, error)
        finally:
            self._caring.discard(threading.current_thread())

    def _care(self, stored: Stored, number: int, thorough: bool) -> None:
        directory = self._directory(stored, number)
        with _only_carer(directory, wait=thorough) as alone:
            if not alone:
                return
            partition = self._partition(stored, number, on_roll=False)
            try:
                if not stored.topic.compacted:
                    retention.enforce(self.root, stored, number, partition)
                elif thorough or compaction.worthwhile(directory):
                    compaction.compact(self.root, stored, number, partition)
            finally:
                partition.close()


class MemoryLog(EmbeddedLog):
    """A private log, gone when it is closed.

    It is a directory too, in memory where the system has a place for that, so that it behaves as
    the embedded log does to the letter, and other processes can be handed its path.
    """

    def __init__(self, **options: Any):
        shared = Path("/dev/shm")
        place = shared if os.access(shared, os.W_OK) else Path(tempfile.gettempdir())
        _sweep(place)
        root = Path(tempfile.mkdtemp(prefix=f"headwater-memory-{os.getpid()}-", dir=place))
        super().__init__(root, **{"durability": "os", **options})
        self.url = "memory:"

    def close(self) -> None:
        """Forget everything."""
        super().close()
        shutil.rmtree(self.root, ignore_errors=True)

    def __del__(self) -> None:
        shutil.rmtree(self.root, ignore_errors=True)


def _sweep(place: Path) -> None:
    """Remove what killed processes have left."""
    for left in place.glob("headwater-memory-*"):
        try:
            os.kill(int(left.name.split("-")[2]), 0)
        except ProcessLookupError:
            shutil.rmtree(left, ignore_errors=True)
        except (PermissionError, ValueError):
            continue


def _bounded(readers: list[RecordReader], last: Any) -> Iterator[pa.RecordBatch]:
    try:
        for each in readers:
            while (batch := each.next(last.get(each.number, FAR))) is not None:
                yield batch
    finally:
        for each in readers:
            each.close()


def _linger(text: str | timedelta) -> timedelta:
    return text if isinstance(text, timedelta) else clock.interval(text)


def _known(what: str, names: list[str]) -> str:
    return f"{what}: " + ", ".join(names) if names else f"there are no {what} yet"


@contextmanager
def _only_carer(directory: Path, wait: bool) -> Iterator[bool]:
    """Keep retention and compaction of one partition to one process at a time."""
    with open(directory / "care", "w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            yield False
            return
        yield True
