"""Producers: rows are buffered, checked in bulk, encoded side by side, and appended in order.

``send`` is the hot path of row-by-row users: it appends a copy to a list; a thread converts the list, a
chunk at a time, and another appends what is ready, so that one chunk is converted while the one
before is encoded and the one before that is on its way to the disk. Invariant: each accepted row
is appended once, in the order of ``send``, or an error about it reaches the caller from ``send``,
``send_batch``, ``flush`` or ``close``.
"""

from __future__ import annotations

import logging
import os
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any, Literal, NamedTuple

import pyarrow as pa

from headwater.closing import Closing
from headwater.durations import micros
from headwater.errors import (
    BufferFull,
    Fenced,
    HeadwaterError,
    LogUnavailable,
    RowError,
    UnknownTopic,
    UsageError,
)
from headwater.log.parallel import done, submit
from headwater.log.position import Position
from headwater.log.process import check_process
from headwater.log.record_batch import Appender, Builder, OutgoingBatch
from headwater.record import DELETED, Headers
from headwater.topic import Topic
from headwater.values import rows, tombstones
from headwater.values.sent_rows import Copier, Row, checked_sequence, marked, shown
from headwater.values.tombstones import Changes

OnFull = Literal["block", "drop", "error"]
CHUNK = 1 << 16
AHEAD = 3
"""How many chunks or batches may be encoded or on their way while the next is made."""
RETRY_SECONDS = 0.5
_FINAL = (Fenced, UnknownTopic, UsageError)
"""After one of these nothing that a producer does can succeed any more."""
_log = logging.getLogger("headwater")


class _Waiting(NamedTuple):
    """Records in the outbox, and what is being made of their pieces."""

    records: OutgoingBatch
    encoded: list[Future[Any]]


class Producer(Closing):
    """Appends records to one topic; made by ``Log.producer``.

    Rows keep the order in which they were sent, within a partition. A row that does not fit is
    left out and reported by the next ``send``, ``flush`` or ``close``; the others are appended.
    When ``flush`` or ``close`` returns, everything sent before is durable.

    >>> import headwater
    >>> log = headwater.open("memory:")
    >>> _ = log.create_topic("orders", "id BIGINT")
    >>> with log.producer("orders") as producer:
    ...     producer.send({"id": 1}, headers={"trace": "f00d"})
    ...     producer.send_batch([{"id": 2}, {"id": 3}])
    ...     print(producer.flush().brief)
    orders:0=3
    """

    def __init__(self, appender: Appender, *, linger: timedelta, buffer: int, on_full: OnFull):
        if on_full not in ("block", "drop", "error"):
            raise UsageError(f'on_full is "block", "drop" or "error", not "{on_full}"')
        if buffer < 1:
            raise UsageError(f"buffer must hold at least one row, not {buffer}")
        self.id = appender.id
        self.dropped = 0
        """Rows that ``on_full="drop"`` has left out."""
        self._process = os.getpid()
        self._appender = appender
        self._linger = linger.total_seconds()
        self._buffer = buffer
        self._on_full = on_full
        # Only list.extend, a slice and a del touch this list, each atomic, and only one thread
        # (the holder of _draining) removes: so send needs no lock.
        self._rows: list[Any] = []
        self._outbox: deque[_Waiting] = deque()
        self._copier = Copier(appender.topic())
        self._columns, self._values = self._copier.columns, self._copier.values
        self._capacity = buffer * self._copier.width
        self._builder = Builder(appender.topic, appender.last_sequence + 1)
        self._reached: dict[int, int] = {}
        self._error: HeadwaterError | None = None
        self._idle = True
        self._closed = False
        self._draining = threading.RLock()  # held by whoever moves rows into the outbox
        self._appending = threading.RLock()  # held by whoever appends from the outbox
        self._wake = threading.Event()
        self._ready = threading.Event()
        self._room = threading.Condition()
        self._threads: list[threading.Thread] = []

    @property
    def sequence(self) -> int:
        """The sequence number the next row will get."""
        return self._builder.sequence + len(self._rows) // self._copier.width

    @property
    def waiting(self) -> bool:
        """Whether it holds rows that are not known to be appended, and will be tried again."""
        return bool(self._outbox or self._rows)

    def send(
        self,
        row: Row,
        *,
        headers: Headers | None = None,
        occurred: datetime | None = None,
        sent: datetime | None = None,
        sequence: int | None = None,
    ) -> None:
        """Accept one row, to be appended within the linger time.

        - ``row``: a mapping of columns to values; it is copied.
        - ``headers=None``: texts or bytes that go along with the record.
        - ``occurred=None``: when it happened by a device's clock, where that is not the event-time column.
        - ``sent=None``: when it was sent by a device's clock, where that is not now.
        - ``sequence=None``: the row's number, where the application numbers its rows: after a crash it may
          send again from any earlier number, and what the log already has is left out.

        A row that does not fit is raised by the next ``send``, ``flush`` or ``close``.
        """
        if self._error is not None:
            self._raise()
        waiting = self._rows
        if len(waiting) >= self._capacity and not self._make_room():
            return
        if headers is not None or occurred is not None or sent is not None or sequence is not None:
            copied = marked(self._copier.copy(row), headers, occurred, sent, sequence)
            waiting.extend(self._copier.odd(copied))
        elif type(row) is dict and len(row) == self._columns:
            try:
                waiting.extend(self._values(row))
            except KeyError:  # it lacks a column, and has one that the topic has not
                waiting.extend(self._copier.odd(row))
        else:
            waiting.extend(self._copier.odd(row))
        if self._idle:
            self._idle = False
            self._rouse(self._wake)

    def delete(
        self,
        key: Any,
        *,
        headers: Headers | None = None,
        occurred: datetime | None = None,
        sequence: int | None = None,
    ) -> None:
        """Append a tombstone to a compacted topic: the key has no value any more.

        - ``key``: its value, a tuple of several, or a mapping of the key columns.
        - ``headers=None``: as for ``send``.
        - ``occurred=None``: since when that is so, where it is not now.
        - ``sequence=None``: as for ``send``.

        >>> import headwater
        >>> log = headwater.open("memory:")
        >>> _ = log.create_topic("prices", "id BIGINT, cents BIGINT", key="id", cleanup="compact")
        >>> with log.producer("prices") as producer:
        ...     producer.delete(1)
        >>> [row["_deleted"] for batch in log.read("prices") for row in batch.to_pylist()]
        [True]
        """
        topic = self._appender.topic()
        _check_compacted(topic)
        values = _values(key)
        row = key if isinstance(key, Mapping) else dict(zip(topic.key, values, strict=False))
        if set(row) != set(topic.key) or not (isinstance(key, Mapping) or len(values) == len(topic.key)):
            raise RowError(
                f'key of topic "{topic.name}" is ({", ".join(topic.key)})',
                detail=f"got {shown(key)}",
            )
        tombstone = marked(self._copier.copy(row), headers, occurred, None, sequence)._replace(deleted=True)
        self.send(tombstone)  # type: ignore[arg-type]

    def send_batch(self, data: Any, *, sequence: int | None = None, partitions: int | None = None) -> None:
        """Append many rows, whole or not at all.

        - ``data``: an Arrow table, a pandas DataFrame or a list of rows; it is copied.
        - ``sequence=None``: the number of its first row, as for ``send``.
        - ``partitions=None``: by how many partitions rows are placed; as many as the topic has, unless given.
          What is sent again, to be left out where it is stored, must go where it went before: give the
          number of then, in case the topic has got more since.

        The batch has been checked when the call returns, and is durable when ``flush`` has returned:
        it is encoded and written while the next one is made.
        """
        self._send_all(
            lambda topic: [(batch, {}) for batch in rows.from_data(data, topic)],
            checked_sequence(sequence),
            partitions,
        )

    def send_changes(
        self, table: pa.Table, *, sequence: int | None = None, partitions: int | None = None
    ) -> None:
        """Append rows with their headers, and tombstones of a compacted topic, as ``send_batch`` does.

        - ``table``: an Arrow table with the topic's columns; it may have ``_deleted``, ``_occurred``,
          ``_sent`` and ``_headers`` too, as records are read with them.
        - ``sequence=None``: the number of its first row, as for ``send``.
        - ``partitions=None``: as for ``send_batch``.

        Where the column ``_deleted`` is true, which only a compacted topic has, a row is a tombstone, of
        which only the key counts; its event time, if it has one, is since when that is so.

        >>> import headwater
        >>> log = headwater.open("memory:")
        >>> _ = log.create_topic("prices", "id BIGINT, cents BIGINT", key="id", cleanup="compact")
        >>> changes = pa.table({"id": [1, 2], "cents": [500, None], "_deleted": [False, True]})
        >>> with log.producer("prices") as producer:
        ...     producer.send_changes(changes)
        """
        if DELETED in table.schema.names:
            _check_compacted(self._appender.topic())
        self._send_all(
            lambda topic: tombstones.from_changes(table, topic), checked_sequence(sequence), partitions
        )

    def append_changes(
        self, tables: Sequence[pa.Table], *, sequence: int | None = None, partitions: int | None = None
    ) -> list[Position]:
        """Append several tables in one durable write, all or none, and return the position after each.

        - ``tables``: each as ``send_changes`` takes it.
        - ``sequence=None``: the number of the first row of all, as for ``send``.
        - ``partitions=None``: as for ``send_batch``.

        What was sent before is flushed first. Those who write for many others share one write in this way. A
        position has the partitions in which rows of its table lie; on a broker, rows of the tables after it
        may lie before it too. After ``LogUnavailable`` the tables may have been stored or not: they are tried
        again, with their numbers, before whatever is appended next.

        >>> import headwater
        >>> log = headwater.open("memory:")
        >>> _ = log.create_topic("orders", "id BIGINT")
        >>> with log.producer("orders") as producer:
        ...     written = producer.append_changes([pa.table({"id": [1, 2]}), pa.table({"id": [3]})])
        >>> [position.brief for position in written]
        ['orders:0=2', 'orders:0=3']
        """
        check_process(self._process)
        whole = _united(tables)
        if DELETED in whole.schema.names:
            _check_compacted(self._appender.topic())
        with self._draining:
            self.flush()
            topic = self._appender.topic()
            changes = tombstones.from_changes(whole, topic)
            if not changes:
                return [Position(topic.name, {}, topic.id) for _ in tables]
            if len(changes) > 1:
                raise UsageError(
                    "tables of more than 2 GB cannot be appended in one write", hint="append less at once"
                )
            [(batch, extras)] = changes
            records = self._builder.from_batch(batch, checked_sequence(sequence), extras)
            records = records if partitions is None else records.placed_by(partitions)
            with self._appending:
                self._put(records, background=False)
                reached = self._append_first()
            ends = records.ends([table.num_rows for table in tables], reached, self._appender.contiguous)
        return [Position(topic.name, each, topic.id) for each in ends]

    def _send_all(
        self, convert: Callable[[Topic], list[Changes]], sequence: int | None, partitions: int | None
    ) -> None:
        """Append what is converted, all of it before the first is put, behind the rows that wait."""
        check_process(self._process)
        with self._draining:
            while self._rows:
                self._drain()
            if self._error is not None:
                self._raise()
            for batch, extras in convert(self._appender.topic()):
                if len(batch):
                    self._make_way()
                    records = self._builder.from_batch(_copied(batch), sequence, extras)
                    self._put(records if partitions is None else records.placed_by(partitions))
                    sequence = None if sequence is None else sequence + len(batch)

    def mark(self, before: datetime | int) -> None:
        """Promise that this producer sends no event from before a time any more.

        - ``before``: the time: a datetime, or microseconds since 1970.

        What was sent so far is flushed first. Those who keep time by this topic may go on to that
        time though nothing else comes. The promise is durable when the call returns; an event that
        breaks it is treated as late.

        >>> import headwater
        >>> log = headwater.open("memory:")
        >>> _ = log.create_topic("orders", "id BIGINT, at TIMESTAMP", event_time="at")
        >>> with log.producer("orders") as producer:
        ...     producer.mark(datetime.fromisoformat("2026-01-02T03:04:05Z"))
        """
        if self._appender.topic().event_time is None:
            raise UsageError(
                f'topic "{self._appender.topic().name}" has no event time, so it takes no marks',
                hint="create it with event_time=",
            )
        time = before if isinstance(before, int) else micros(before)
        self.flush()
        with self._appending:
            self._appender.mark(time)

    def flush(self) -> Position:
        """Make everything sent so far durable and return the position after it."""
        check_process(self._process)
        with self._draining:
            while self._rows:
                self._drain(background=False)
            while self._outbox:
                self._append_first()
        if self._error is not None:
            self._raise()
        topic = self._appender.topic()
        return Position(topic.name, dict(self._reached), topic.id)

    def close(self) -> None:
        """Flush, then release the producer; closing again does nothing. A ``with`` block does it at its end.

        >>> import headwater
        >>> log = headwater.open("memory:")
        >>> _ = log.create_topic("orders", "id BIGINT")
        >>> log.producer("orders").close()
        """
        if self._closed:
            return
        try:
            self.flush()
        finally:
            self._closed = True
            self._error = UsageError(f'producer "{self.id}" is closed')
            self._wake.set()
            self._ready.set()
            for thread in self._threads:
                thread.join()
            self._appender.close()
            if self.dropped:
                _log.warning("producer %s dropped %d rows: its buffer was full", self.id, self.dropped)

    # The buffer

    def _raise(self) -> None:
        error = self._error
        if not isinstance(error, _FINAL):
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
                detail=f"{self._buffer:,} rows wait to be appended",
                hint='flush, slow down, or choose on_full="block"',
            )
        with self._room:
            while len(self._rows) >= self._capacity and self._error is None:
                self._room.wait(1.0)
        if self._error is not None:
            self._raise()
        return True

    def _rouse(self, event: threading.Event) -> None:
        """Wake a thread; the first row or batch ever sent starts both."""
        with self._draining:
            if not self._threads:
                self._threads = [
                    threading.Thread(target=work, name=f"headwater-{self.id}", daemon=True)
                    for work in (self._run_drain, self._run_append)
                ]
                for thread in self._threads:
                    thread.start()
        event.set()

    def _run_drain(self) -> None:
        """Convert rows in the background: at once when a chunk is full, else after the linger."""
        while not self._closed:
            self._idle = True
            if not self._rows:
                self._wake.wait()
            self._idle = False
            self._wake.clear()
            if len(self._rows) < CHUNK * self._copier.width and self._linger and not self._closed:
                self._wake.wait(self._linger)
            with self._draining, self._failing():
                self._drain()

    def _run_append(self) -> None:
        """Append in the background what is ready; what failed is tried again, unless that is in vain."""
        while not self._closed and not isinstance(self._error, _FINAL):
            self._ready.wait()
            self._ready.clear()
            with self._failing():
                while self._outbox:
                    self._append_first()
            if self._outbox and not self._closed:
                self._ready.wait(RETRY_SECONDS)
                self._ready.set()

    @contextmanager
    def _failing(self) -> Iterator[None]:
        """Keep an error of the background for the next caller."""
        try:
            yield
        except HeadwaterError as error:
            self._error = error
        except Exception as error:  # a defect of ours must reach the caller too, and not stop the thread
            self._error = HeadwaterError(f'producer "{self.id}" failed', detail=repr(error))

    def _drain(self, background: bool = True) -> None:
        """Move the next chunk of rows into the outbox."""
        self._make_way()  # before rows are taken: a failure here leaves them where they are
        chunk = self._rows[: CHUNK * self._copier.width]
        if not chunk:
            return
        records, refused = self._builder.from_copied(chunk, self._copier)
        del self._rows[: len(chunk)]  # only now: a defect in the conversion loses nothing
        with self._room:
            self._room.notify_all()
        self._error = self._error or refused
        if records is not None:
            self._put(records, background)

    def _make_way(self) -> None:
        """Where enough wait in the outbox, append the oldest here and now."""
        while len(self._outbox) >= AHEAD:
            self._append_first()

    def _put(self, records: OutgoingBatch, background: bool = True) -> None:
        """Begin to encode the records; in the background they are also appended."""
        pieces = records.pieces()
        if self._outbox or len(pieces) > 1:
            encoded = [submit(self._appender.encode, piece) for piece in pieces]
        else:  # nothing to wait for, and so little that another thread would only be slower
            encoded = [done(self._appender.encode(piece)) for piece in pieces]
        self._outbox.append(_Waiting(records, encoded))
        if background:
            self._rouse(self._ready)

    def _append_first(self) -> Mapping[int, int]:
        """Append the oldest records of the outbox; if that fails they stay, to be tried again."""
        with self._appending:
            if not self._outbox:
                return {}
            records, encoded = self._outbox[0]
            try:
                reached = self._appender.append(records, [each.result() for each in encoded])
            except RowError:  # the backend cannot store them, today or ever
                self._outbox.popleft()
                raise
            self._reached.update(reached)
            self._outbox.popleft()
            if isinstance(self._error, LogUnavailable):  # what failed before has succeeded now
                self._error = None
            return reached


def _copied(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return a copy: the memory may be that of a pandas frame or a numpy array, which can be changed."""
    return pa.concat_batches([batch, batch.slice(0, 0)])


def _united(tables: Sequence[pa.Table]) -> pa.Table:
    """Return the rows of all tables; a column that only some of them have is null in the others."""
    one = tables[0] if len(tables) == 1 else pa.concat_tables(tables, promote_options="default")
    return one.combine_chunks()


def _check_compacted(topic: Topic) -> None:
    if not topic.compacted:
        raise UsageError(
            f'topic "{topic.name}" is not compacted, so nothing in it can be deleted by key',
            hint='create it with cleanup="compact"',
        )


def _values(key: Any) -> tuple[Any, ...]:
    return tuple(key) if isinstance(key, tuple | list) else (key,)
