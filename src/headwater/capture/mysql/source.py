"""MySQL and MariaDB as sources of changes: the binlog as a stream, and snapshots beside it.

Invariant: a stream that breaks goes on where it was, in the middle of a transaction too: what was handed out
of it is not handed out again until ``begin`` is called.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa
import pymysql

from headwater.capture.change import (
    Delivery,
    SnapshotChunk,
    SourceTable,
    TableChanges,
    Transactions,
    Truncation,
)
from headwater.capture.mysql import catalog, server, snapshot
from headwater.capture.mysql import position as positions
from headwater.capture.mysql.binlog import BinlogRequest, BinlogStream
from headwater.capture.mysql.catalog import MySqlTable
from headwater.capture.mysql.deleting import delete_rows
from headwater.capture.mysql.failures import ANEW, source_error
from headwater.capture.mysql.gathering import MOST_ROWS, EmptiedTables, Gathering, Part
from headwater.capture.mysql.gtids import Gtids
from headwater.capture.mysql.logged_table import logged_table
from headwater.capture.mysql.position import BinlogPlace, BinlogPosition
from headwater.capture.mysql.server import MySqlServer
from headwater.capture.mysql.session import MySqlSession
from headwater.capture.mysql.snapshot import ChunkRequest, DeliveredUntil
from headwater.capture.source import CaptureSource, SourceMoment
from headwater.errors import SourceRefused, UsageError, nearest
from headwater.stores.mysql.address import parse

_MOST_SECONDS: Final = 0.2
"""How long a delivery is gathered where events keep coming."""
_UNREADABLE: Final = (ValueError, LookupError, TypeError, NotImplementedError, struct.error)
"""What the package says of values that Python does not have, such as the 31st of February."""


class MySqlSource(CaptureSource):
    """A database of MySQL 8 or of MariaDB 10.6 or later, captured from its binlog.

    Nothing is made on the server, so a capture's ``name`` means nothing to it, and ``drop`` has nothing to
    do. Its binlog is kept as long as the server is told to, whether it was captured or not. Positions are
    sets of GTIDs, with their place in the files of the server.

    Tables that are altered are read anew from ``information_schema``. That has them as they are now, the
    binlog as they were: where a stream is behind, names, types and keys come from the binlog, and only the
    declared type of a column and whether it is generated may be those of a later one of its name and type.
    """

    def __init__(self, url: str, name: str):
        self._address = parse(url)
        self.title = self._address.title
        self.name = name
        self._session = MySqlSession(self._address)
        self._server: MySqlServer | None = None
        self._stream: BinlogStream | None = None
        self._tables: dict[str, MySqlTable] | None = None
        self._logged: dict[str, tuple[list[dict[str, Any]], MySqlTable]] = {}
        self._last: dict[str, MySqlTable] = {}
        """The tables as they were when it was last known."""
        self._since: dict[str, Gtids | None] = {}
        self._gathering: Gathering | None = None
        self._here: BinlogPosition | None = None
        """Behind the last whole transaction that was delivered."""
        self._delivered = 0
        """How many changes of the transaction behind it were delivered."""
        self._until: DeliveredUntil | None = None
        self._kept: BinlogPlace | None = None

    def tables(self) -> list[SourceTable]:
        """Return every table, by name."""
        found = self._session.run(lambda db: catalog.tables(db, self._address.database))
        return [found[name].table for name in sorted(found)]

    def begin(self, tables: Sequence[str], position: str | None) -> str:
        """Make ready to deliver the changes of tables, and return from where on they are delivered."""
        self._disconnect()
        self._server = self._session.run(lambda db: server.check_server(db, self.title))
        current = self._session.run(self._server.current)
        begin = current if position is None else self._checked(position)
        self._tables, self._logged = None, {}
        self._last = {name: self._capturable(name) for name in tables}
        if not tables:
            raise UsageError("a capture needs tables", hint="name at least one")
        known, again = self._since, position is not None and bool(self._since)
        self._since = {name: known.get(name, current.gtids if again else None) for name in tables}
        self._gathering = Gathering(self._address.database, self._since, self._find)
        self._here, self._delivered, self._until = begin, 0, None
        self._kept = begin.place or self._kept or current.place
        self._connect()
        return str(begin) if position is None else position

    def read(self, timeout: float) -> Delivery:
        """Return what comes next, or an empty delivery when nothing came within some seconds."""
        gathering, stream = self._connected()
        try:
            last = self._gather(gathering, stream, time.monotonic() + timeout)
            return self._delivery(gathering, stream, last)
        except (pymysql.Error, OSError) as error:
            self._disconnect()
            raise source_error(error, self.title) from None
        except _UNREADABLE as error:
            self._disconnect()
            raise self._unreadable(error) from error
        except SourceRefused:
            self._disconnect()
            raise

    def confirm(self, position: str) -> None:
        """Note how far the log has it: the server keeps its binlog by a rule of its own, and is not told."""
        self._kept = positions.parse(position).place or self._kept

    def passed(self, position: str, other: str) -> bool:
        """Tell whether a position is the other one or behind it."""
        return positions.parse(position).gtids.covers(positions.parse(other).gtids)

    def end(self) -> str:
        """Return the position behind everything that is committed now."""
        return str(self._session.run(self._known_server().current))

    def moment(self) -> SourceMoment:
        """Return where the history ends, and the server's time from before that."""
        now = self._session.run(server.clock)
        return SourceMoment(self.end(), now)

    def chunk(self, table: str, after: tuple[object, ...] | None, limit: int) -> SnapshotChunk:
        """Return rows of a table behind a key, in the order of the key, as they are at one moment."""
        self._tables = None
        request, found = ChunkRequest(self._capturable(table), after, limit), self._known_server()
        return self._session.run(lambda db: snapshot.read_chunk(db, found, request, self._until))

    def count(self, table: str) -> int:
        """Return about how many rows a table has."""
        return self._session.run(lambda db: snapshot.count(db, self._address.database, table))

    def delete_rows(self, table: str, keys: pa.RecordBatch) -> bool:
        """Delete the rows of some keys, unless others have them locked."""
        return self._session.run(lambda db: delete_rows(db, table, keys))

    def retained(self) -> int | None:
        """Return how many bytes of binlog there are behind what was confirmed; others may need them too."""
        kept = self._kept
        return None if kept is None else self._session.run(lambda db: server.retained(db, kept))

    def drop(self) -> None:
        """Forget where it was: there is nothing on the server to remove."""
        self._disconnect()
        self._gathering, self._since = None, {}

    def close(self) -> None:
        """Close the connections."""
        self._disconnect()
        self._session.close()

    # Beginning

    def _known_server(self) -> MySqlServer:
        if self._server is None:
            self._server = self._session.run(server.known_server)
        return self._server

    def _checked(self, position: str) -> BinlogPosition:
        """Return a position that the server can go on from."""
        begin, found = positions.parse(position), self._known_server()
        self._session.run(lambda db: server.check_position(db, begin, found, self.title))
        return begin

    def _capturable(self, name: str) -> MySqlTable:
        present = self._present()
        if name not in present:
            raise SourceRefused(f'table "{name}" does not exist', hint=nearest(name, present))
        if not present[name].table.key:
            raise SourceRefused(
                f'table "{name}" cannot be captured',
                detail="it has no primary key that can be read, so nothing identifies its rows",
                hint="give it a primary key",
            )
        return present[name]

    def _present(self) -> dict[str, MySqlTable]:
        if self._tables is None:
            self._tables = self._session.run(lambda db: catalog.tables(db, self._address.database))
        return self._tables

    def _connected(self) -> tuple[Gathering, BinlogStream]:
        if self._gathering is None or self._here is None:
            raise UsageError("a capture is read before it has begun", hint="call begin first")
        if self._stream is None:
            self._server = self._session.run(lambda db: server.check_server(db, self.title))
            self._checked(str(self._here))
            self._connect()
        assert self._stream is not None
        return self._gathering, self._stream

    def _connect(self) -> None:
        assert self._gathering is not None and self._here is not None
        found = self._known_server()
        request = BinlogRequest(self._here.gtids, found.mariadb, self._address.database, list(self._since))
        try:
            self._stream = BinlogStream(self._address, request)
        except (pymysql.Error, OSError) as error:
            raise source_error(error, self.title) from None
        self._gathering.begin(self._here.gtids, self._delivered)

    def _disconnect(self) -> None:
        if self._stream is not None:
            self._stream.close()
            self._stream = None

    # Reading

    def _gather(self, gathering: Gathering, stream: BinlogStream, deadline: float) -> tuple[str, int] | None:
        """Take in events until there are enough or no more; return where the last whole transaction ended."""
        last: tuple[str, int] | None = None
        latest = max(deadline, time.monotonic() + _MOST_SECONDS)
        while gathering.gathered.rows < MOST_ROWS and time.monotonic() < latest:
            waiting = not (gathering.gathered.rows or last)
            event = stream.next(max(0.0, deadline - time.monotonic()) if waiting else 0.0)
            if event is None:
                break
            if gathering.take(event):
                last = stream.place
            if gathering.altered:
                self._tables, self._logged, gathering.altered = None, {}, False
        return last

    def _delivery(self, gathering: Gathering, stream: BinlogStream, last: tuple[str, int] | None) -> Delivery:
        gathered = gathering.taken()
        transactions = gathered.transactions
        changes = tuple(each for part in gathered.parts for each in _changes(part, transactions))
        number = self._known_server().number
        opened = gathering.open
        self._delivered = opened.changes if opened is not None else 0
        # Also of events without changes: a snapshot that was made later has them.
        until = opened.gtids if opened is not None else gathering.gtids
        self._until = DeliveredUntil(until, BinlogPlace(number, *stream.place))
        if last is None:
            return Delivery(changes)
        self._here = BinlogPosition(gathering.gtids, BinlogPlace(number, *last))
        return Delivery(changes, str(self._here))

    def _find(self, name: str, columns: Sequence[Any] | None) -> MySqlTable:
        """Return a table as the binlog has it, or without columns from there as it was last."""
        if columns is None:
            return self._last[name]
        described = [vars(each) for each in columns]
        found = self._logged.get(name)
        if found is None or found[0] != described:
            made = logged_table(name, columns, self._present().get(name))
            found = self._logged[name] = described, made
            self._last[name] = made
        return found[1]

    def _unreadable(self, error: Exception) -> SourceRefused:
        return SourceRefused(
            f"{self.title} has a value in its binlog that cannot be read",
            detail=f"{type(error).__name__}: {error}",
            hint=f"such as a date that is none, or a text in an unusual character set: mend it, and {ANEW}",
        )


def _changes(part: Part, transactions: Transactions) -> list[TableChanges | Truncation]:
    if isinstance(part, EmptiedTables):
        return [Truncation(each.table, transactions, part.transaction, part.index) for each in part.tables]
    return [part.changes(transactions)]
