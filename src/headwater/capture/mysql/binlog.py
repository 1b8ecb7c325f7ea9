"""The binlog as a replica gets it: events one after the other, waited for no longer than one wants.

The package ``mysql-replication`` speaks the protocol and parses events. Left to itself it waits for an event
for as long as that takes, and connects anew from where it was first begun; both are prevented here.

Invariant: after a stream has failed it is of no more use; nothing is delivered twice by one.
"""

from __future__ import annotations

import random
import select
import ssl
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

import pymysql
from pymysqlreplication import BinLogStreamReader
from pymysqlreplication.event import (
    GtidEvent,
    MariadbGtidEvent,
    NotImplementedEvent,
    QueryEvent,
    RotateEvent,
    XAPrepareEvent,
    XidEvent,
)
from pymysqlreplication.row_event import (
    DeleteRowsEvent,
    PartialUpdateRowsEvent,
    UpdateRowsEvent,
    WriteRowsEvent,
)

from headwater.capture.mysql.gtids import Gtids
from headwater.stores.mysql.address import MySqlAddress

_HEARTBEAT: Final = 10.0
_READ_SECONDS: Final = 60.0
"""How long a server may say nothing, not even that it lives."""
_EVENTS: Final = [
    GtidEvent,
    MariadbGtidEvent,
    NotImplementedEvent,
    QueryEvent,
    RotateEvent,
    XAPrepareEvent,
    XidEvent,
    DeleteRowsEvent,
    PartialUpdateRowsEvent,
    UpdateRowsEvent,
    WriteRowsEvent,
]
_LOST: Final = 2013


@dataclass(frozen=True)
class BinlogRequest:
    """What is asked of a server."""

    begin: Gtids
    mariadb: bool
    database: str
    tables: Sequence[str]


class _NothingYetError(Exception):
    """Nothing has come in time; what comes later is not lost."""


class BinlogStream:
    """A connection on which a server sends its binlog."""

    def __init__(self, address: MySqlAddress, request: BinlogRequest):
        self._connection: Any = None
        self._deadline: float | None = None
        self._reader = BinLogStreamReader(
            address.arguments | {"read_timeout": _READ_SECONDS},
            # A server ends the connection of a replica when another comes with its number.
            server_id=random.randrange(2**31, 2**32),
            blocking=True,
            only_events=_EVENTS,
            filter_non_implemented_events=False,
            auto_position=str(request.begin),
            is_mariadb=request.mariadb,
            only_schemas=[request.database],
            only_tables=list(request.tables),
            slave_heartbeat=_HEARTBEAT,
            pymysql_wrapper=self._connect,
            enable_logging=False,
        )
        self._begin()

    @property
    def place(self) -> tuple[str, int]:
        """The file and the offset behind the last event."""
        return str(self._reader.log_file), int(self._reader.log_pos or 0)

    def next(self, timeout: float) -> Any:
        """Return the next event, or None when none came within some seconds."""
        self._deadline = time.monotonic() + timeout
        try:
            return self._reader.fetchone()
        except _NothingYetError:
            return None

    def close(self) -> None:
        """End it."""
        with suppress(pymysql.Error, OSError):
            self._reader.close()

    def _begin(self) -> None:
        """Read the first event, in whose place a server says why it sends none."""
        try:
            self._reader.fetchone()
        except BaseException:
            self.close()
            raise

    def _connect(self, **arguments: Any) -> Any:
        """Connect for the package: it makes a connection of its own for questions, and one for the stream."""
        if "cursorclass" in arguments:
            return pymysql.connect(database=arguments.pop("db"), **arguments)
        if self._connection is not None:
            raise pymysql.err.OperationalError(
                _LOST, "lost connection to the server while reading its binlog"
            )
        self._connection = connection = pymysql.connect(**arguments)
        read = connection._read_packet

        def read_in_time(*arguments: Any) -> Any:
            self._wait()
            return read(*arguments)

        # The package goes on to the next packet until there is an event that was asked for; PyMySQL offers
        # no way to say for how long.
        connection._read_packet = read_in_time
        return connection

    def _wait(self) -> None:
        """Return when there is something to read, however late that is if nothing was said about it."""
        if self._deadline is None or self._buffered():
            return
        select.select([self._connection._sock], [], [], max(0.0, self._deadline - time.monotonic()))
        if not self._buffered():
            raise _NothingYetError

    def _buffered(self) -> bool:
        socket, file = self._connection._sock, self._connection._rfile
        if socket is None:
            return True  # it has broken, which reading will say
        before = socket.gettimeout()
        socket.setblocking(False)
        try:
            return bool(file.peek(1)) or self._ended(socket)
        except (ssl.SSLWantReadError, BlockingIOError):
            return False
        finally:
            socket.settimeout(before)

    def _ended(self, socket: Any) -> bool:
        """Tell whether the other side has gone: then there is something to read, which is nothing."""
        return bool(select.select([socket], [], [], 0)[0])
