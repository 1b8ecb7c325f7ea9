"""Connections to MySQL and MariaDB that are made anew when they break, for a while.

Invariant: an action is repeated only as a whole, on a new connection, so it must find out by itself what an
attempt before has left. What a value looks like does not depend on the settings of the server.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final, TypeVar

from headwater.backoff import Backoff
from headwater.errors import UsageError
from headwater.stores.mysql.address import MySqlAddress

try:
    import pymysql
    from pymysql.cursors import SSCursor

    from headwater.stores.mysql import failures
except ModuleNotFoundError as error:
    if (error.name or "").split(".")[0] != "pymysql":
        raise
    raise UsageError(
        "support for MySQL is not installed", hint="run `pip install 'headwater[mysql]'`"
    ) from None

_T = TypeVar("_T")
_BACKOFF = Backoff(0.05, 2.0, jitter=0.0)
_SETTINGS: Final = (
    "SET SESSION sql_mode = 'STRICT_ALL_TABLES', time_zone = '+00:00', "
    "transaction_isolation = 'REPEATABLE-READ', innodb_lock_wait_timeout = 20"
)
_OLDER: Final = _SETTINGS.replace("transaction_isolation", "tx_isolation")
_ANSWER_SECONDS = 600

Rows = list[tuple[Any, ...]]


class Transaction:
    """Statements on a connection, all of which count or none."""

    def __init__(self, connection: Any):
        self._connection = connection

    def rows(self, statement: str, parameters: Sequence[object] = ()) -> Rows:
        """Run a statement and return its rows."""
        with self._connection.cursor() as cursor:
            cursor.execute(statement, tuple(parameters) or None)
            return list(cursor.fetchall())

    def many(self, statement: str, parameters: Sequence[Sequence[object]]) -> None:
        """Run a statement for each of several parameters; an INSERT for many of them at once."""
        with self._connection.cursor() as cursor:
            cursor.executemany(statement, parameters)

    def stream(self, statement: str) -> Any:
        """Return a cursor from which rows are fetched as they are needed."""
        cursor = self._connection.cursor(SSCursor)
        cursor.execute(statement)
        return cursor

    @property
    def is_mariadb(self) -> bool:
        """Whether the server is MariaDB, and not MySQL."""
        return "mariadb" in str(self._connection.get_server_info()).lower()


class MySqlTransactions:
    """One connection, for one thread at a time."""

    def __init__(self, address: MySqlAddress, what: str, retry_timeout: float):
        self._address, self._what, self._retry_timeout = address, what, retry_timeout
        self._open: Any = None

    def run(self, action: Callable[[Transaction], _T], most: float | None = None) -> _T:
        """Run an action in a transaction; if the connection breaks, again on a new one."""
        waiting = _BACKOFF.pauses(self._retry_timeout if most is None else min(self._retry_timeout, most))
        while True:
            try:
                return self._attempt(action)
            except (pymysql.Error, OSError, ValueError) as error:
                self.close()
                pause = next(waiting, None) if failures.is_transient(error) else None
                if pause is None:
                    raise failures.sink_error(error, self._what) from None
            time.sleep(pause)

    def begin(self) -> Transaction:
        """Begin a transaction that sees the database as it is now, and is ended by ``close``."""
        try:
            connection = self._connected()
            connection.query("START TRANSACTION WITH CONSISTENT SNAPSHOT")
            return Transaction(connection)
        except (pymysql.Error, OSError) as error:
            self.close()
            raise failures.sink_error(error, self._what) from None

    def close(self) -> None:
        """Close what is open; what was not committed is undone."""
        if self._open is not None:
            with suppress(pymysql.Error, OSError):
                self._open._force_close()  # not by an answer that may never come
            self._open = None

    def _attempt(self, action: Callable[[Transaction], _T]) -> _T:
        connection = self._connected()
        connection.begin()
        try:
            result = action(Transaction(connection))
            connection.commit()
        except BaseException:
            self.close()
            raise
        return result

    def _connected(self) -> Any:
        if self._open is None:
            self._open = pymysql.connect(
                **self._address.arguments, database=self._address.database, read_timeout=_ANSWER_SECONDS
            )
            self._prepare(self._open)
        return self._open

    def _prepare(self, connection: Any) -> None:
        try:
            connection.query(_SETTINGS)
        except pymysql.err.OperationalError as error:
            if error.args[0] != 1193:  # no such variable: MariaDB before 11.1 has the older name
                raise
            connection.query(_OLDER)
