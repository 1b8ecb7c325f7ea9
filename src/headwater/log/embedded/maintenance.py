"""Maintenance of a log: retention and compaction, beside the appenders, by whoever comes first.

Invariant: one process at a time maintains a partition, and a failure never stops an append.
"""

from __future__ import annotations

import fcntl
import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from headwater.errors import HeadwaterError, UnknownTopic
from headwater.log.embedded import compaction, retention
from headwater.log.embedded.catalog import StoredTopic
from headwater.log.embedded.storage import Storage

LOCK = "maintenance.lock"
_log = logging.getLogger("headwater")


class Maintenance:
    """Applies topics' cleanup, now or in the background."""

    def __init__(self, storage: Storage):
        self._storage = storage
        self._running: set[threading.Thread] = set()

    def begin(self, stored: StoredTopic) -> None:
        """Apply a topic's cleanup, as declared now, in a thread of its own, where it has any."""
        try:
            topic = self._storage.current(stored.topic).topic
        except (HeadwaterError, OSError):  # deleted, or unreadable: what appends here will say so
            return
        if topic.retention is None and topic.retention_bytes is None and not topic.compacted:
            return
        thread = threading.Thread(
            target=self._in_background, args=(stored,), name="headwater-maintenance", daemon=True
        )
        self._running.add(thread)
        thread.start()

    def now(self, stored: StoredTopic) -> None:
        """Apply a topic's cleanup to everything received so far, and wait for it."""
        for number in range(stored.topic.partitions):
            self._storage.with_retry(stored, partial(self._partition, stored, number, thorough=True))

    def wait(self) -> None:
        """Wait for what is under way."""
        for thread in list(self._running):
            thread.join()

    def _in_background(self, stored: StoredTopic) -> None:
        try:
            for number in range(self._storage.current(stored.topic).topic.partitions):
                self._storage.with_retry(stored, partial(self._partition, stored, number, thorough=False))
        except UnknownTopic:
            _log.debug('topic "%s" was deleted during its cleanup', stored.topic.name)
        except (HeadwaterError, OSError) as error:  # appending goes on; the next roll tries again
            _log.warning('cleanup of topic "%s" failed: %s', stored.topic.name, error)
        finally:
            self._running.discard(threading.current_thread())

    def _partition(self, stored: StoredTopic, number: int, thorough: bool) -> None:
        directory = self._storage.directory(stored, number)
        with _exclusive(directory, wait=thorough) as held:
            if not held:
                return
            stored = self._storage.current(
                stored.topic
            )  # the settings of now, not of when the producer began
            partition = self._storage.partition(stored, number)
            try:
                if not stored.topic.compacted:
                    retention.enforce(self._storage.root, stored, number, partition, self._storage.fsync)
                elif thorough or compaction.worthwhile(directory):
                    compaction.compact(self._storage.root, stored, number, partition)
            finally:
                partition.close()


@contextmanager
def _exclusive(directory: Path, wait: bool) -> Iterator[bool]:
    """Hold the lock of a partition's maintenance; without ``wait``, yield False if another process has it."""
    with open(directory / LOCK, "w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            yield False
            return
        yield True
