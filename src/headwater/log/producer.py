"""Producers: rows are buffered, checked in bulk, and appended by one thread per producer.

``send`` is the hot path of row-by-row users: it appends to a list, and the list is converted a
chunk at a time. Invariant: each accepted row is appended once, in the order of ``send``, or an
error about it reaches the caller from ``send``, ``flush`` or ``close``.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from datetime import datetime, timedelta
from types import TracebackType
from typing import Any, Self

from headwater.errors import BufferFull, Fenced, HeadwaterError, LogUnavailable, RowError, UsageError
from headwater.log import rows
from headwater.log.interface import Headers, OnFull
from headwater.log.outgoing import Appender, Builder, Marked, Outgoing
from headwater.log.position import Position

CHUNK = 1 << 16
RETRY_SECONDS = 0.5
_log = logging.getLogger("headwater")


class Producer:
    """Appends records to one topic.

    Rows keep the order in which they were sent, within a partition. A row that does not fit is
    left out and reported by the next ``send``, ``flush`` or ``close``; the others are appended.
    When ``flush`` or ``close`` returns, everything sent before is durable.
    """

    def __init__(self, appender: Appender, *, linger: timedelta, buffer: int, on_full: OnFull):
        if on_full not in ("block", "drop", "error"):
            raise UsageError(f'on_full is "block", "drop" or "error", not "{on_full}"')
        if buffer < 1:
            raise UsageError(f"buffer must hold at least one row, not {buffer}")
        self.id = appender.id
        self.dropped = 0
        """Rows that ``on_full="drop"`` has left out."""
        self._appender = appender
        self._linger = linger.total_seconds()
        self._capacity = buffer
        self._on_full = on_full
        # Only list.append, a slice and a del touch this list, each atomic, and only one thread
        # (the holder of _draining) removes: so send needs no lock.
        self._rows: list[Any] = []
        self._in_flight: Outgoing | None = None
        self._builder = Builder(appender.topic, appender.last_sequence + 1)
        self._reached: dict[int, int] = {}
        self._error: HeadwaterError | None = None
        self._idle = True
        self._closed = False
        self._draining = threading.RLock()
        self._wake = threading.Event()
        self._room = threading.Condition()
        self._thread: threading.Thread | None = None

    @property
    def sequence(self) -> int:
        """The sequence number the next row will get."""
        return self._builder.sequence + len(self._rows)

    def send(
        self,
        row: rows.Row,
        *,
        headers: Headers | None = None,
        occurred: datetime | None = None,
        sent: datetime | None = None,
        sequence: int | None = None,
    ) -> None:
        """Accept one row, to be appended within the linger time.

        ``sequence`` lets the application number its rows: after a crash it may send again from
        any earlier number, and what the log already has is left out. ``occurred`` and ``sent``
        are a device's own times, where they are not the event-time column and now.
        """
        if self._error is not None:
            self._raise()
        if headers is not None or occurred is not None or sent is not None or sequence is not None:
            row = Marked(row, False, headers, occurred, sent, sequence)  # type: ignore[assignment]
        waiting = self._rows
        if len(waiting) >= self._capacity and not self._make_room():
            return
        waiting.append(row)
        if self._idle:
            self._rouse()

    def delete(self, key: Any, *, headers: Headers | None = None, sequence: int | None = None) -> None:
        """Append a tombstone: the key, or the mapping of key columns, has no value any more."""
        topic = self._appender.topic()
        if not topic.compacted:
            raise UsageError(
                f'topic "{topic.name}" is not compacted, so nothing in it can be deleted by key',
                hint='create it with cleanup="compact"',
            )
        row = key if isinstance(key, Mapping) else dict(zip(topic.key, _values(key), strict=False))
        if set(row) != set(topic.key):
            raise RowError(
                f'key of topic "{topic.name}" is ({", ".join(topic.key)})',
                detail=f"got {key!r}",
            )
        self.send(Marked(row, True, headers, None, None, sequence))  # type: ignore[arg-type]

    def send_batch(self, data: Any, *, sequence: int | None = None) -> None:
        """Append an Arrow table, a pandas DataFrame or a list of rows, whole or not at all.

        The batch has been checked and written when the call returns, and is durable when ``flush``
        has returned: the disk works while the next batch is made. ``sequence`` numbers its first row.
        """
        with self._draining:
            self._drain_all()
            for batch in rows.from_data(data, self._appender.topic()):
                if not len(batch):
                    continue
                self._append(self._builder.from_batch(batch, sequence), wait=False)
                sequence = None if sequence is None else sequence + len(batch)

    def flush(self) -> Position:
        """Make everything sent so far durable and return the position after it."""
        with self._draining:
            self._drain_all()
            self._appender.settle()
        return Position(self._appender.topic().name, dict(self._reached))

    def close(self) -> None:
        """Flush, then release the producer; closing again does nothing."""
        if self._closed:
            return
        try:
            self.flush()
        finally:
            self._closed = True
            self._error = UsageError(f'producer "{self.id}" is closed')
            self._wake.set()
            if self._thread is not None:
                self._thread.join()
            self._appender.close()
            if self.dropped:
                _log.warning("producer %s dropped %d rows: its buffer was full", self.id, self.dropped)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # The buffer

    def _raise(self) -> None:
        error = self._error
        if not isinstance(error, Fenced | UsageError):  # a fenced or closed producer stays so
            self._error = None
        if error is not None:
            raise error

    def _make_room(self) -> bool:
        """Apply the policy of a full buffer; tell whether the row may be appended now."""
        if self._on_full == "drop":
            self.dropped += 1
            return False
        if self._on_full == "error":
            raise BufferFull(
                f'buffer of producer "{self.id}" is full',
                detail=f"{self._capacity:,} rows wait to be appended",
                hint='flush, slow down, or choose on_full="block"',
            )
        with self._room:
            while len(self._rows) >= self._capacity and self._error is None:
                self._room.wait(1.0)
        if self._error is not None:
            self._raise()
        return True

    def _rouse(self) -> None:
        """Wake the thread that drains the buffer; the first row ever sent starts it."""
        if self._thread is None:
            with self._draining:
                if self._thread is None:
                    name = f"headwater-producer-{self.id}"
                    self._thread = threading.Thread(target=self._run, name=name, daemon=True)
                    self._thread.start()
        self._wake.set()

    def _run(self) -> None:
        """Drain the buffer in the background: at once when a chunk is full, else after the linger."""
        while not self._closed:
            self._idle = True
            if not self._rows and not self._in_flight:
                self._wake.wait()
            self._idle = False
            self._wake.clear()
            if len(self._rows) < CHUNK and self._linger and not self._closed:
                self._wake.wait(self._linger)
            try:
                with self._draining:
                    self._drain()
            except HeadwaterError as error:
                self._error = error
                self._wake.wait(RETRY_SECONDS)
                if isinstance(error, Fenced):
                    return

    def _drain_all(self) -> None:
        while self._rows or self._in_flight:
            self._drain()
        if self._error is not None:
            self._raise()

    def _drain(self) -> None:
        """Append what is in flight, or else the next chunk; a failed append stays in flight."""
        if self._in_flight is None:
            self._take()
        if self._in_flight is not None:
            self._append(self._in_flight)
            self._in_flight = None
            if isinstance(self._error, LogUnavailable):  # what failed before has succeeded now
                self._error = None

    def _take(self) -> None:
        chunk = self._rows[:CHUNK]
        del self._rows[: len(chunk)]
        with self._room:
            self._room.notify_all()
        if chunk:
            self._in_flight, refused = self._builder.from_rows(chunk)
            self._error = self._error or refused

    def _append(self, records: Outgoing, wait: bool = True) -> None:
        self._reached.update(self._appender.append(records, wait))


def _values(key: Any) -> tuple[Any, ...]:
    return tuple(key) if isinstance(key, tuple | list) else (key,)
