"""The writing side of a partition: one appender's handle on its files.

Appends of all processes are ordered by a file lock. A batch is written under the lock, made
durable outside it, so that appenders share the disk's work (group commit), and then published.
Invariant: the active segment holds whole batches up to the tail, and the head never names bytes
that are not durable.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from headwater import durable, durations
from headwater.errors import DamagedLog, Fenced, UnknownTopic
from headwater.log.embedded.partition import frame, head, received_time, segment, tail
from headwater.log.embedded.partition.frame import Draft, Flag, Header, Kind
from headwater.log.embedded.partition.head import Head
from headwater.log.embedded.partition.segment import IndexEntry, Segment
from headwater.log.embedded.partition.tail import Tail

SNAPSHOT_FRAMES = 64
_TORN_READS = 50
SEGMENT_BYTES = 64 << 20


class _Origin(NamedTuple):
    """Whose frame it is, and when it was received."""

    producer: str
    epoch: int
    previous_sequence: int
    """The producer's last sequence in this partition before the frame."""
    received: int


class Partition:
    """Appends frames to one partition."""

    def __init__(
        self,
        directory: Path,
        *,
        fsync: bool,
        segment_bytes: int = SEGMENT_BYTES,
        on_roll: Callable[[], None] | None = None,
    ):
        self.directory = directory
        self._on_roll = on_roll
        self._fsync = fsync
        self._segment_bytes = segment_bytes
        self._lock = os.open(directory / "lock", os.O_RDWR | os.O_CREAT, 0o644)
        self._head = os.open(directory / "head", os.O_RDWR | os.O_CREAT, 0o644)
        self._fd = -1
        self._tail: Tail | None = None
        self._agreed = 0

    @property
    def tail(self) -> tail.Tail:
        """The end as known since ``refresh``; meaningful only while locked."""
        assert self._tail is not None
        return self._tail

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep all other appenders out."""
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(self._lock, fcntl.LOCK_UN)

    def refresh(self) -> None:
        """Learn what others have appended; call it first, with the lock held."""
        if os.fstat(self._head).st_nlink == 0:
            raise UnknownTopic("the topic has been deleted", detail=f'its files were in "{self.directory}"')
        written = head.read(self._head)
        newest = written.head if written and written.since_boot else None
        # Another may have taken back what it had written, and this one seen.
        shorter = self._tail is not None and os.fstat(self._fd).st_size < self._tail.at
        if self._tail is None or shorter or newest is None or newest.segment != self._tail.segment.base:
            self._reload(newest, written.head if written else None)
        sure = written.head if written and written.sure else None
        published = sure.size if sure and sure.segment == self.tail.segment.base else 0
        has_head = written is not None or head.blank(self.directory / "head")
        self.tail.catch_up(self._fd, published, has_head)

    def check(self, producer: str, epoch: int) -> int:
        """Return the producer's last sequence here, or refuse it if a newer one has started."""
        state = self.tail.producers.get(producer)
        if state is None:
            return -1
        if state.epoch > epoch:
            raise fenced(producer)
        return state.last_sequence

    def write(self, drafts: Sequence[Draft], producer: str, epoch: int) -> int:
        """Write a batch as frames and return where the file ended before, for ``undo``."""
        if self.tail.at >= self._segment_bytes:
            self.roll()
            if self._on_roll is not None:
                self._on_roll()
        elif self.tail.unsaved >= SNAPSHOT_FRAMES:
            self.sync()
            self.publish()
            self.tail.save(self.directory, self._fsync)
        received = self._received()
        before = self.tail.at
        base, last = self.tail.end, self.check(producer, epoch)
        headers, buffers = [], []
        for number, each in enumerate(drafts):
            more = Flag.MORE if number < len(drafts) - 1 else 0
            header = _header(each, Kind.DATA, more, base, _Origin(producer, epoch, last, received))
            headers.append(header)
            buffers += [frame.pack(header), each.payload]
            base, last = header.last + 1, header.last_sequence
        self._write(buffers)
        self._take(headers)
        return before

    def fence(self, producer: str, epoch: int) -> None:
        """Write the mark after which older epochs of a producer are refused."""
        self._note(Kind.EPOCH, producer, epoch, frame.NO_TIME)

    def mark(self, producer: str, epoch: int, before: int) -> int:
        """Write that a producer sends nothing older any more; return where the file ended before."""
        start = self.tail.at
        self._note(Kind.MARK, producer, epoch, before)
        return start

    def epoch(self, producer: str) -> int:
        """Return the newest epoch that the partition knows of a producer."""
        state = self.tail.producers.get(producer)
        return state.epoch if state else 0

    def undo(self, before: int) -> None:
        """Take back the batch just written, with the lock still held."""
        os.ftruncate(self._fd, before)
        self._tail = None  # the producers' states are read anew

    def retract(self, before: int) -> None:
        """After a failed sync, take back what was written, unless others have appended to it or published it.

        A sync that failed may have dropped the pages, so a later one that succeeds proves nothing.
        """
        if self._tail is None or os.fstat(self._fd).st_size != self.tail.at:
            return
        written = head.read(self._head)
        if written is None or written.head.segment != self.tail.segment.base or written.head.size <= before:
            self.undo(before)

    def published(self) -> Head:
        """Return how far readers see the partition; before anything is published, its beginning."""
        for _ in range(_TORN_READS):
            written = head.read(self._head)
            if written is not None:
                return written.head
            if os.fstat(self._head).st_size == 0:
                return Head(0, 0, 0, 0)
            time.sleep(0.001)  # one that is being written, or damaged
        raise DamagedLog(
            f'log is damaged: file "{self.directory / "head"}" cannot be read',
            detail="it tells how far the partition is durable",
            hint="append to the topic, or open the log again: it is worked out from the records",
            resume=None,
        )

    def sync(self) -> Head:
        """Make what is written durable; return the head that may then be published."""
        reached = Head(self.tail.segment.base, self.tail.at, self.tail.end, self.tail.received)
        if self._fsync:
            os.fdatasync(self._fd)
        return reached

    def publish(self, reached: Head | None = None) -> None:
        """Let readers see everything up to ``reached``; call it with the lock held, after ``sync``."""
        new = reached or Head(self.tail.segment.base, self.tail.at, self.tail.end, self.tail.received)
        old = head.read(self._head)
        if old is None or not old.since_boot or new[:2] > old.head[:2]:
            head.write(self._head, new, self._fsync)
        if old is None and self._fsync:  # from now on there is a head, be it an older one
            os.fsync(self._head)

    def roll(self) -> None:
        """Begin a new segment, so that the one before can be archived, deleted or compacted."""
        reached = self.sync()
        if not self._fsync:  # once a segment: a power loss then takes nothing of those before the newest
            os.fdatasync(self._fd)
            durable.sync(self.directory)
        self.publish(reached)
        fresh = self._segment(self.tail.end)
        if fresh.base == self.tail.segment.base:
            return
        before, now = self.tail, Tail(fresh, 0, self.tail.end, self.tail.received, self.tail.producers)
        now.save(self.directory, self._fsync)
        self._tail = None  # if anything fails from here on, all is read anew
        # The head decides which segment is active, also for one that is not there yet.
        head.write(self._head, Head(fresh.base, 0, now.end, now.received), self._fsync)
        self._switch(now, self._opened(fresh))
        tail.forget_snapshots(self.directory, before.segment.base)

    def close(self) -> None:
        """Release the files."""
        for fd in (self._lock, self._head, self._fd):
            if fd >= 0:
                os.close(fd)
        self._fd = -1

    def recover(self) -> None:
        """Bring the head up to what is on disk, after a crash or a power loss."""
        with self.locked():
            appended = os.fstat(self._head)
            self.refresh()
            self.publish(self.sync())
            # Nothing was appended: the file goes on telling when that was.
            os.utime(self._head, ns=(appended.st_atime_ns, appended.st_mtime_ns))

    def now(self) -> int:
        """Return what time it is by all clocks; call it with the lock held, after ``refresh``."""
        clocks = received_time.read_clocks(durations.now(), (self._lock, self._head), self.tail.received)
        return clocks.agreed(self.directory)

    def _received(self) -> int:
        """Return when what is written now is received.

        Where that goes back, a new segment is begun, so that times rise within each.
        """
        now, newest = durations.now(), self.tail.received
        if 0 <= now - self._agreed <= received_time.FRESH and newest - now <= received_time.SKEW:
            return max(now, newest)
        clocks = received_time.read_clocks(now, (self._lock, self._head), newest)
        received, self._agreed = clocks.received_time(self.directory), clocks.now
        if received < newest:
            self.roll()
        return received

    def _reload(self, newest: Head | None, published: Head | None) -> None:
        """Read everything anew; without a head that is surely the newest, the newest segment is active."""
        if newest is not None:
            base = newest.segment
        else:
            segments = segment.listing(self.directory)
            ends = [s.base if s.end is None else s.end for s in segments]
            base = max([*ends, published.segment if published else 0])
        self._tail = None
        active = self._segment(base)
        descriptor = self._opened(active)
        self._switch(tail.load(self.directory, active), descriptor)

    def _switch(self, new: Tail, descriptor: int) -> None:
        """Go over to a segment: only when it is open, so that no other file is ever written."""
        if self._fd >= 0:
            os.close(self._fd)
        self._fd, self._tail = descriptor, new

    def _segment(self, base: int) -> Segment:
        return Segment(base, None, self.directory / segment.name(base))

    def _opened(self, active: Segment) -> int:
        descriptor = os.open(active.path, os.O_RDWR | os.O_CREAT, 0o644)
        if self._fsync:  # also for a segment that another has made and not synced
            durable.sync(self.directory)
        return descriptor

    def _note(self, kind: Kind, producer: str, epoch: int, time: int) -> None:
        """Write a frame without records."""
        empty = Draft(0, 0, 0, 0, 0, durations.now(), time, b"", 0)
        origin = _Origin(producer, epoch, self.check(producer, epoch), self._received())
        header = _header(empty, kind, 0, self.tail.end, origin)
        self._write([frame.pack(header)])
        self._take([header])

    def _write(self, buffers: list[bytes]) -> None:
        """Write at the tail, whole or not at all."""
        at = self.tail.at
        try:
            for start in range(0, len(buffers), 512):
                group = buffers[start : start + 512]
                wanted = sum(map(len, group))
                written = os.pwritev(self._fd, group, at)
                if written < wanted:  # a signal, a quota or a full disk: the rest says which
                    rest = b"".join(bytes(b) for b in group)[written:]
                    while rest:
                        done = os.pwrite(self._fd, rest, at + written)
                        written, rest = written + done, rest[done:]
                at += wanted
        except OSError:
            os.ftruncate(self._fd, self.tail.at)
            raise

    def _take(self, headers: list[Header]) -> None:
        for header in headers:
            if header.rows and self.tail.at - self.tail.indexed >= segment.INDEX_EVERY:
                with suppress(OSError):  # the index is only a help
                    segment.add_entry(
                        self.tail.segment, IndexEntry(header.base, self.tail.at, header.received)
                    )
                self.tail.indexed = self.tail.at
            self.tail.take(self.tail.at, header)


def _header(draft: Draft, kind: Kind, flags: int, base: int, origin: _Origin) -> Header:
    """Return the header of a draft, with the offset and the time that the log gives it."""
    return Header(
        kind, draft.flags | flags, draft.schema_version, draft.rows, base, base + draft.rows - 1,
        origin.epoch, draft.first_sequence, draft.last_sequence, origin.previous_sequence, origin.received,
        draft.sent, draft.newest, draft.payload_checksum, origin.producer, len(draft.payload),
    )  # fmt: skip


def fenced(producer: str) -> Fenced:
    """Return the error for a producer that another one of its id has replaced."""
    return Fenced(
        f'producer "{producer}" has been replaced',
        detail="a newer producer of the same id has started",
        hint="run one producer per id, or give each its own",
    )
