"""Events that are sent over HTTP: one thread per topic appends them, one journal knows their keys.

Invariant: what a server that died had begun is finished before the next one appends with its numbers; the
bytes of requests that wait are bounded, and who comes when there are too many is told to come again.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from contextlib import suppress
from itertools import groupby
from pathlib import Path

import pyarrow as pa

from headwater import durations
from headwater.closing import Closing
from headwater.errors import BufferFull, RowError, UnknownTopic
from headwater.log import Log, Position, Producer
from headwater.serve.topics.group_commit import GroupCommit
from headwater.serve.topics.request_journal import FILE, RequestJournal, WrittenRequest

WAITING_BYTES = 64 << 20
_log = logging.getLogger("headwater")


class EventSender(Closing):
    """All that is sent to a log through one server."""

    def __init__(self, log: Log, home: Path, waiting: int = WAITING_BYTES):
        self._log, self._home, self._most = log, home, waiting
        self._waiting = 0
        self._opening = threading.Lock()
        self._journal: RequestJournal | None = None
        self._groups: dict[str, GroupCommit] = {}

    def recover(self) -> None:
        """Finish what servers that are gone had begun; where nothing was ever sent, nothing is made."""
        if (self._home / FILE).exists():
            self._opened()

    def reserve(self) -> ByteReservation:
        """Count the bytes of a request while it waits; call it in the event loop alone."""
        return ByteReservation(self)

    def give_back(self, size: int) -> None:
        """Count some bytes no more."""
        self._waiting -= size

    def take(self, size: int) -> None:
        """Count some bytes more; ``BufferFull`` if there are too many."""
        if self._waiting and self._waiting + size > self._most:
            raise BufferFull(
                "too much waits to be appended",
                detail=f"{self._waiting:,} bytes of other requests",
                hint="send again after a second, with the same Idempotency-Key",
            )
        self._waiting += size

    def existing(self, topic: str) -> GroupCommit | None:
        """Return what appends to a topic, if somebody has sent to it already."""
        return self._groups.get(topic)

    def opened(self, topic: str, loop: asyncio.AbstractEventLoop) -> GroupCommit:
        """Return what appends to a topic, and begin it if need be; it waits for the disk."""
        self._log.topic(topic)  # says so if there is none
        journal = self._opened()
        with self._opening:
            if topic not in self._groups:
                self._groups[topic] = GroupCommit(self._log, topic, journal, loop)
            return self._groups[topic]

    def forget(self, topic: str, group: GroupCommit) -> None:
        """End what appends to a topic that is gone, or that was made anew."""
        with self._opening:
            if self._groups.get(topic) is group:
                del self._groups[topic]
        with suppress(UnknownTopic):
            group.close()

    def close(self) -> None:
        """Append what was taken, and end."""
        for group in self._groups.values():
            group.close()
        self._groups = {}
        if self._journal is not None:
            self._journal.close()

    def _opened(self) -> RequestJournal:
        with self._opening:
            if self._journal is None:
                journal = RequestJournal(self._home)
                try:
                    self._finish_begun(journal)
                except BaseException:
                    journal.close()
                    raise
                self._journal = journal
            return self._journal

    def _finish_begun(self, journal: RequestJournal) -> None:
        """Append what was written down by servers that are gone, with the numbers that it has."""
        for slot, requests in groupby(journal.pending(), key=lambda each: each.slot):
            with journal.holding(slot) as held:
                if held:  # one that is not is at work on it
                    self._append_again(journal, list(requests))

    def _append_again(self, journal: RequestJournal, requests: list[WrittenRequest]) -> None:
        for each in requests:
            try:
                topic = self._log.topic(each.name)
                anew = (topic.id or topic.name) != each.topic or topic.partitions < each.partitions
                if anew or each.payload is None:
                    raise UnknownTopic(f'topic "{each.name}" was made anew')
                with self._log.producer(each.name, journal.producer(each.slot)) as producer:
                    reached = _appended_again(producer, each)
            except (UnknownTopic, RowError) as error:
                _log.warning("a request of %d rows is given up: %s", each.rows, error.message)
                journal.forget([each.id])
            else:
                journal.finish([(each.id, reached.brief)], durations.now())


def _appended_again(producer: Producer, request: WrittenRequest) -> Position:
    """Append the rows of a request where they were to go, and return the position after them."""
    table = pa.ipc.open_stream(request.payload).read_all()
    return producer.append_changes([table], sequence=request.sequence, partitions=request.partitions)[0]


class ByteReservation:
    """The bytes of one request, counted until its block ends."""

    def __init__(self, ingest: EventSender):
        self._ingest, self.size = ingest, 0

    def __enter__(self) -> ByteReservation:
        return self

    def __exit__(self, *_error: object) -> None:
        self._ingest.give_back(self.size)

    def add(self, size: int) -> None:
        """Count some more."""
        self._ingest.take(size)
        self.size += size
