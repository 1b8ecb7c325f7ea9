"""Whether a server can be captured, and whether it has the history behind a position.

Invariant: a capture begins only where the server tells every change with whole rows and the names of columns,
and where the position's transactions are its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal

import pymysql

from headwater.capture.mysql import gtids as sets
from headwater.capture.mysql.failures import ANEW
from headwater.capture.mysql.gtids import Gtids
from headwater.capture.mysql.position import BinlogPlace, BinlogPosition, file_number
from headwater.capture.mysql.session import MySqlConnection
from headwater.errors import SourceRefused

_SYNTAX: Final = 1064
_OTHER: Final = "it was restored from a backup, or is another one"
_ATTEMPTS: Final = 5
_NEEDED: Final = {
    "binlog_format": ("ROW", "the binlog has statements, not rows"),
    "binlog_row_image": ("FULL", "the binlog has only parts of the rows"),
    "binlog_row_metadata": ("FULL", "the binlog has no names of columns"),
}
_UNREAD: Final = {
    "log_bin_compress": "OFF",
    "binlog_transaction_compression": "OFF",
    "binlog_row_value_options": "",
}
"""Settings of some servers with which the binlog has what is not read here."""


@dataclass(frozen=True)
class MySqlServer:
    """What is known of a server."""

    mariadb: bool
    number: int
    """Its ``server_id``."""

    def current(self, db: MySqlConnection) -> BinlogPosition:
        """Return where its binlog ends: the numbers and the place of the same moment."""
        for _ in range(_ATTEMPTS):
            gtids, place = self.gtids(db), self.place(db)
            if self.gtids(db) == gtids:
                return BinlogPosition(gtids, place)
        return BinlogPosition(gtids)  # too busy to find a quiet moment

    def gtids(self, db: MySqlConnection) -> Gtids:
        """Return the transactions that its binlog has had until now."""
        return _set(db, "gtid_binlog_pos" if self.mariadb else "gtid_executed")

    def place(self, db: MySqlConnection) -> BinlogPlace:
        """Return the end of its binlog."""
        status = _status(db)
        if status is None:
            raise SourceRefused("the server writes no binlog", hint="start it with --log-bin")
        return BinlogPlace(self.number, status["File"], int(status["Position"]))


def known_server(db: MySqlConnection) -> MySqlServer:
    """Return what is known of a server."""
    mariadb = "mariadb" in str(db.value("SELECT VERSION()")).lower()
    return MySqlServer(mariadb, int(db.value("SELECT @@GLOBAL.server_id")))


def check_server(db: MySqlConnection, title: str) -> MySqlServer:
    """Refuse a server that is not set up to be captured."""
    if db.variable("log_bin") != "ON":
        hint = "start the server with --log-bin, and with --server-id"
        raise SourceRefused(f"{title} cannot be captured", detail="the server writes no binlog", hint=hint)
    for name, (value, why) in _NEEDED.items():
        if db.variable(name) != value:
            raise _setting(title, name, value, why)
    for name, value in _UNREAD.items():
        if db.variable(name) not in (None, value):
            raise _setting(title, name, value, "the binlog has what is not read here")
    server = known_server(db)
    if not server.mariadb and db.variable("gtid_mode") != "ON":
        raise _setting(title, "gtid_mode", "ON", "transactions have no GTIDs")
    server.place(db)  # which needs the rights of a reader
    return server


def check_position(db: MySqlConnection, position: BinlogPosition, server: MySqlServer, title: str) -> None:
    """Refuse a position that the server has not come to, has no binlog of, or is of another one.

    That the binlog of a position of MariaDB is gone, the server says when the stream begins.
    """
    here = server.gtids(db)
    if not here.covers(position.gtids):
        raise _refused(
            title,
            f"the capture is at {position.gtids}, and the server at {str(here) or 'its beginning'}: {_OTHER}",
        )
    if server.mariadb:
        _check_place(db, position, server, title)
    elif not position.gtids.covers(_set(db, "gtid_purged")):
        raise _refused(title, "the server has purged the binlog from this position on")


def _check_place(db: MySqlConnection, position: BinlogPosition, server: MySqlServer, title: str) -> None:
    """Compare what stands at a place of this server with what stood there."""
    place = position.place
    if place is None or place.server != server.number:
        return  # a replica, which has the same transactions in other files
    if file_number(place.file) > file_number(server.place(db).file):
        raise _refused(title, f'it has no file "{place.file}" yet: {_OTHER}')
    try:
        found = db.value("SELECT BINLOG_GTID_POS(%s, %s)", (place.file, place.offset))
    except pymysql.Error:
        found = None  # no place between two events here, or a file that is no more
    names = {str(row[0]) for row in db.rows("SHOW BINARY LOGS")}
    if place.file in names and (found is None or sets.parse(str(found)) != position.gtids):
        raise _refused(
            title,
            f"other transactions stand at this position: {_OTHER}",
        )


def clock(db: MySqlConnection) -> int:
    """Return what time it is there, in microseconds since 1970."""
    return int(db.value("SELECT CAST(UNIX_TIMESTAMP(NOW(6)) * 1000000 AS SIGNED)"))


def retained(db: MySqlConnection, place: BinlogPlace) -> int:
    """Return how many bytes of binlog there are behind a place."""
    first = file_number(place.file)
    sizes = {file_number(str(row[0])): int(row[1]) for row in db.rows("SHOW BINARY LOGS")}
    behind = sum(size for number, size in sizes.items() if number >= first)
    return max(0, behind - (place.offset if first in sizes else 0))


def _set(db: MySqlConnection, variable: Literal["gtid_binlog_pos", "gtid_executed", "gtid_purged"]) -> Gtids:
    return sets.parse(str(db.value(f"SELECT @@GLOBAL.{variable}")))


def _status(db: MySqlConnection) -> dict[str, Any] | None:
    try:
        return db.named("SHOW MASTER STATUS")
    except pymysql.err.ProgrammingError as error:
        if error.args[0] != _SYNTAX:
            raise
    return db.named("SHOW BINARY LOG STATUS")  # as MySQL calls it since 8.4


def _setting(title: str, name: str, value: str, why: str) -> SourceRefused:
    hint = f"SET GLOBAL {name} = '{value}', and in its configuration; connections that are open keep theirs"
    return SourceRefused(
        f"{title} cannot be captured", detail=f"{why}: {name} is not {value or 'empty'}", hint=hint
    )


def _refused(title: str, detail: str) -> SourceRefused:
    return SourceRefused(f"{title} cannot be captured from where it was", detail=detail, hint=ANEW)
