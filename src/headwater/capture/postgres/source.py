"""PostgreSQL as a source of changes: its stream, its snapshots, and what it keeps for them.

Invariant: a stream that breaks goes on where it was, in the middle of a transaction too: what was handed out
of it is not handed out again until ``begin`` is called.
"""

from __future__ import annotations

import re
import time
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, TypeVar

import psycopg
import pyarrow as pa

from headwater.capture.change import Delivery, SnapshotChunk, SourceTable, TableChanges, Truncation
from headwater.capture.postgres import position as positions
from headwater.capture.postgres import slot as slots
from headwater.capture.postgres.catalog import Catalog, PostgresTable
from headwater.capture.postgres.deleting import delete_rows
from headwater.capture.postgres.failures import source_error
from headwater.capture.postgres.pgoutput import (
    OpenTransaction,
    Parsed,
    Parser,
    Relation,
    RowMessages,
    TruncateMessage,
)
from headwater.capture.postgres.publication import Publication
from headwater.capture.postgres.replication import ReplicationStream, Subscription
from headwater.capture.postgres.row_changes import Layout, table_changes
from headwater.capture.postgres.session import PostgresSession, title_of
from headwater.capture.postgres.slot import ReplicationSlot
from headwater.capture.postgres.snapshot import ChunkReader
from headwater.capture.source import CaptureSource, SourceMoment
from headwater.errors import SourceRefused, SourceUnavailable, UsageError, nearest

_T = TypeVar("_T")
_BUSY_SECONDS, _PAUSE = 10.0, 0.05
"""How long a slot may still be in use by a connection that has just ended."""
_PLAIN: Final = re.compile(r"[a-z0-9_]{1,50}")
_FLUSH: Final = (
    "SELECT pg_logical_emit_message(true, 'headwater', '') WHERE pg_current_wal_flush_lsn() < %s::pg_lsn"
)


class _NeedsText(Exception):
    """A table has got a column whose binary form is not read here."""


class PostgresSource(CaptureSource):
    """A database of PostgreSQL 14 or later, captured by logical replication.

    ``name`` is the capture's: its slot and its publication are ``headwater_NAME``, unless others are given,
    which are used as they are. Positions are ``X/Y@SYSTEM``, those of single transactions ``X/Y``; either can
    be begun at. Generated columns are sent by no server before 18: neither tables nor changes have any.
    What was removed by a TRUNCATE of a single partition is not told by PostgreSQL.
    """

    def __init__(self, url: str, name: str, *, slot: str | None = None, publication: str | None = None):
        self.title = title_of(url)
        self._slot = ReplicationSlot(slot or object_name(name), slot is not None)
        self._publication = Publication(publication or object_name(name), publication is not None)
        self._session = PostgresSession(url, self.title)
        self._snapshots = ChunkReader(self._session, self.title)
        self._catalog = Catalog()
        self._captured: dict[int, str] = {}
        self._tables: dict[str, PostgresTable] = {}
        self._stream: ReplicationStream | None = None
        self._begun, self._system, self._binary = False, "", True
        self._position, self._flushed = 0, 0
        self._parser = Parser()
        self._open: OpenTransaction | None = None
        self._layouts: dict[int, tuple[Relation, Layout]] = {}

    def tables(self) -> list[SourceTable]:
        """Return every table, by name."""
        found = self._session.run(self._catalog.tables)
        return [found[name].captured().table for name in sorted(found)]

    def identities(self, tables: Iterable[str]) -> Mapping[str, str]:
        """Return the numbers of some tables: another of the same name has another one."""
        found = self._session.run(self._catalog.numbers)
        return {name: str(found[name]) for name in tables if name in found}

    def begin(self, tables: Sequence[str], position: str | None) -> str:
        """Make ready to deliver the changes of tables, and return from where on they are delivered."""
        self._disconnect()
        chosen = self._session.run(lambda db: self._checked(db, tables, position))
        self._session.run(lambda db: self._publication.publish(db, chosen))
        self._position = self._session.run(lambda db: self._start(db, position))
        self._captured = {each.number: each.title for each in chosen}
        self._binary = all(d.binary is not None for each in chosen for d in each.captured().decoders)
        self._open, self._flushed, self._begun = None, 0, True
        self._connect()
        return positions.of_system(self._position, self._system)

    def read(self, timeout: float) -> Delivery:
        """Return what comes next, or an empty delivery when nothing came within some seconds."""
        deadline = time.monotonic() + timeout
        self._connected().ask_soon()
        while True:
            delivery = self._next(max(0.0, deadline - time.monotonic()))
            if delivery.changes or delivery.position is not None or time.monotonic() >= deadline:
                return delivery

    def confirm(self, position: str) -> None:
        """Let the database forget what is before a position: the log has it durably."""
        self._flushed = max(self._flushed, positions.number(position))
        if self._stream is not None:
            try:
                self._stream.confirm(self._flushed)
            except psycopg.Error:
                self._disconnect()  # it is told again with the next connection

    def passed(self, position: str, other: str) -> bool:
        """Tell whether a position is the other one or behind it."""
        return positions.number(position) >= positions.number(other)

    def end(self) -> str:
        """Return the position behind everything that is committed now."""
        return self._reached(self._session.run(slots.current))

    def moment(self) -> SourceMoment:
        """Return where the history ends, and the server's time from before that."""
        now, position = self._session.run(slots.moment)
        return SourceMoment(self._reached(position), now)

    def chunk(self, table: str, after: tuple[object, ...] | None, limit: int) -> SnapshotChunk:
        """Return rows of a table behind a key, in the order of the key, as they are at one moment."""
        rows = self._snapshots.chunk(self._table(table), after, limit)
        return SnapshotChunk(
            rows.batch, self._reached(rows.end), rows.batch.num_rows < limit, rows.after, rows.unfit
        )

    def count(self, table: str) -> int:
        """Return about how many rows a table has."""
        return self._snapshots.count(self._table(table))

    def delete_rows(self, table: str, keys: pa.RecordBatch) -> bool:
        """Delete the rows of some keys, unless others have them locked."""
        found = self._table(table)
        return self._session.run(lambda db: delete_rows(db, found, keys))

    def retained(self) -> int | None:
        """Return how many bytes of log the server keeps for this capture."""
        return self._session.run(self._slot.retained)

    def drop(self) -> None:
        """Remove the slot and the publication, unless they were given."""
        self._disconnect()
        self._retried(lambda: self._session.run(self._slot.drop))
        self._session.run(self._publication.drop)
        self._begun = False

    def close(self) -> None:
        """Close the connections."""
        self._disconnect()
        self._session.close()

    def _checked(
        self, db: psycopg.Connection, names: Sequence[str], position: str | None
    ) -> list[PostgresTable]:
        """Return the tables of some names, of a server that can go on from a position."""
        self._system = slots.check_server(db, self.title)
        if position is not None:
            begin = slots.check_position(db, position, self._system, self.title)
            self._slot.check(db, begin)
            self._check_publication(db)
        self._tables = self._catalog.tables(db)
        if not names:
            raise UsageError("a capture needs tables", hint="name at least one")
        return [self._capturable(name) for name in names]

    def _check_publication(self, db: psycopg.Connection) -> None:
        if not self._publication.given and not self._publication.exists(db):
            raise SourceRefused(
                f'publication "{self._publication.name}" is gone',
                detail="without it the server does not tell what has changed since",
                hint="drop it (`headwater capture drop`) and begin it anew, with new snapshots",
            )

    def _capturable(self, name: str) -> PostgresTable:
        table = self._tables.get(name)
        if table is None:
            raise SourceRefused(f'table "{name}" does not exist', hint=nearest(name, self._tables))
        if not table.logged:
            hint = f"let the server log its changes: ALTER TABLE {name} SET LOGGED"
            raise SourceRefused(f'table "{name}" cannot be captured', detail="it is unlogged", hint=hint)
        if not table.layout.table.key:
            raise SourceRefused(
                f'table "{name}" cannot be captured',
                detail="nothing identifies its rows in changes",
                hint="give it a primary key, or a unique index of columns that are not null: "
                "ALTER TABLE … REPLICA IDENTITY USING INDEX …",
            )
        return table

    def _start(self, db: psycopg.Connection, position: str | None) -> int:
        """Return the position to begin at; make the slot if there is none yet."""
        if position is not None:
            return positions.number(position)
        if not self._slot.exists(db):
            begin = self._slot.create(db)
        else:
            self._slot.check(db, None)
            begin = slots.flushed(db)
        slots.settle(db, self.title)
        return begin

    def _connected(self) -> ReplicationStream:
        if not self._begun:
            raise UsageError("a capture is read before it has begun", hint="call begin first")
        if self._stream is None:
            self._session.run(self._check_again)
            self._connect()
        assert self._stream is not None
        return self._stream

    def _check_again(self, db: psycopg.Connection) -> None:
        system = slots.check_server(db, self.title)
        here = positions.of_system(self._position, self._system)
        self._slot.check(db, slots.check_position(db, here, system, self.title))

    def _connect(self) -> None:
        subscription = Subscription(self._slot.name, self._publication.name, self._binary)
        self._stream = self._retried(lambda: self._streaming(subscription))
        self._parser, self._layouts = Parser(self._open), {}
        if self._flushed:
            try:
                self._stream.confirm(self._flushed)
            except psycopg.Error as error:
                self._disconnect()
                raise source_error(error, self.title) from None

    def _streaming(self, subscription: Subscription) -> ReplicationStream:
        try:
            return ReplicationStream(self._session.dsn, subscription, self._position)
        except psycopg.errors.ObjectInUse:
            raise self._slot.busy(self._session.run(self._slot.active)) from None
        except psycopg.Error as error:
            raise source_error(error, self.title) from None

    def _retried(self, action: Callable[[], _T]) -> _T:
        """Do what needs the slot, which the server may not have noticed yet that nobody uses any more."""
        deadline = time.monotonic() + _BUSY_SECONDS
        while True:
            try:
                return action()
            except SourceUnavailable as error:
                if "is in use" not in error.message or time.monotonic() > deadline:
                    raise
            time.sleep(_PAUSE)

    def _disconnect(self) -> None:
        if self._stream is not None:
            self._stream.close()
            self._stream = None

    def _next(self, timeout: float) -> Delivery:
        try:
            return self._delivery(self._parser.parse(self._connected().fetch(timeout)))
        except _NeedsText:
            self._binary = False
            self._disconnect()
            return Delivery()
        except BaseException as error:
            self._disconnect()  # what was fetched and not handed out is sent again
            if isinstance(error, psycopg.Error):
                raise source_error(error, self.title) from None
            raise

    def _delivery(self, parsed: Parsed) -> Delivery:
        changes = [each for part in parsed.parts for each in self._changes(part, parsed)]
        self._snapshots.delivered(parsed.numbers)
        self._open = self._parser.open
        if parsed.position is None or parsed.position <= self._position:
            return Delivery(tuple(changes))
        self._position = parsed.position
        return Delivery(tuple(changes), positions.of_system(self._position, self._system))

    def _changes(
        self, part: RowMessages | TruncateMessage, parsed: Parsed
    ) -> list[TableChanges | Truncation]:
        if isinstance(part, RowMessages):
            if part.relation.number not in self._captured:
                return []
            return [table_changes(part, self._layout(part.relation), parsed.transactions)]
        tables = [each for each in part.relations if each.number in self._captured]
        at = (parsed.transactions, part.transaction, part.index)
        return [Truncation(self._layout(each).table, *at) for each in tables]

    def _layout(self, relation: Relation) -> Layout:
        known, layout = self._layouts.get(relation.number, (None, None))
        if layout is None or known != relation:
            layout = self._session.run(lambda db: self._catalog.layout(db, relation))
            self._layouts[relation.number] = (relation, layout)
        if self._binary and any(each.binary is None for each in layout.decoders):
            raise _NeedsText
        return layout

    def _table(self, name: str) -> PostgresTable:
        """Return a table as it is now."""
        known = self._tables.pop(name, None)
        if known is not None:
            number = known.number
            self._tables |= self._session.run(lambda db: self._catalog.tables(db, number))
        if name not in self._tables:
            self._tables = self._session.run(self._catalog.tables)
        return self._capturable(name)

    def _reached(self, position: int) -> str:
        """Return a position that the stream comes to, however idle the database is.

        The stream has only what is on disk, and what no commit has asked to be put there may stay in memory.
        """
        written = positions.text(position)
        self._session.run(lambda db: db.execute(_FLUSH, (written,)))
        if not self._system:
            self._system = self._session.run(lambda db: slots.check_server(db, self.title))
        return f"{written}@{self._system}"


def object_name(name: str) -> str:
    """Return the name of a capture's slot and publication: what PostgreSQL allows, and nobody else's."""
    if _PLAIN.fullmatch(name):
        return f"headwater_{name}"
    plain = re.sub(r"[^a-z0-9_]", "_", name.lower())[:40]
    return f"headwater_{plain}_{zlib.crc32(name.encode()):08x}"
