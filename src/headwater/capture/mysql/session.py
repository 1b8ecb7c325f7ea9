"""The ordinary connection beside a stream: for the catalog, the server's settings and snapshots.

Invariant: what a value looks like does not depend on the settings of the server or of its user. An action is
repeated only where its connection had broken unnoticed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final, TypeVar

import pymysql
from pymysql.constants import FIELD_TYPE
from pymysql.converters import conversions

from headwater.capture.mysql.failures import source_error
from headwater.stores.mysql.address import MySqlAddress

_T = TypeVar("_T")
_SETTINGS: Final = "SET SESSION sql_mode = '', time_zone = '+00:00'"
_READ_SECONDS: Final = 600
_AS_TEXT: Final = (
    FIELD_TYPE.DATE,
    FIELD_TYPE.NEWDATE,
    FIELD_TYPE.DATETIME,
    FIELD_TYPE.TIMESTAMP,
    FIELD_TYPE.TIME,
    FIELD_TYPE.BIT,
)
"""Types whose values are left as the server sends them, since Python's types do not hold all of them."""
_CONVERSIONS: Final = {kind: convert for kind, convert in conversions.items() if kind not in _AS_TEXT}

Rows = list[tuple[Any, ...]]


class MySqlConnection:
    """A connection on which statements are run, each a transaction unless one has begun a longer one."""

    def __init__(self, connection: Any):
        self._connection = connection

    @property
    def open(self) -> bool:
        """Whether it has not broken."""
        return bool(self._connection.open)

    def rows(self, query: str, parameters: Sequence[object] = ()) -> Rows:
        """Run a statement and return its rows."""
        with self._connection.cursor() as cursor:
            cursor.execute(query, tuple(parameters) or None)
            return list(cursor.fetchall())

    def value(self, query: str, parameters: Sequence[object] = ()) -> Any:
        """Run a query and return the only value of its only row."""
        return self.rows(query, parameters)[0][0]

    def named(self, query: str) -> dict[str, Any] | None:
        """Run a statement and return its first row, by the names of its columns, if there is one."""
        with self._connection.cursor() as cursor:
            cursor.execute(query)
            row = cursor.fetchone()
            return (
                None
                if row is None
                else {each[0]: value for each, value in zip(cursor.description, row, strict=True)}
            )

    def variable(self, name: str) -> str | None:
        """Return a setting of the server in capitals, or None if it has no such setting."""
        found = self.rows("SHOW GLOBAL VARIABLES LIKE %s", (name,))
        return str(found[0][1]).upper() if found else None

    def close(self) -> None:
        """End it."""
        with suppress(pymysql.Error, OSError):
            self._connection.close()


class MySqlSession:
    """Keeps a connection to the database that is captured, for one thread."""

    def __init__(self, address: MySqlAddress):
        self._address = address
        self._open: MySqlConnection | None = None

    def run(self, action: Callable[[MySqlConnection], _T]) -> _T:
        """Run an action on the connection."""
        used = self._open is not None
        try:
            return action(self._connected())
        except (pymysql.Error, OSError) as error:
            broken = self._open is None or not self._open.open
            self.close()
            if not (used and broken):
                raise source_error(error, self._address.title) from None
        return self.run(action)

    def close(self) -> None:
        """Close what is open."""
        if self._open is not None:
            self._open.close()
            self._open = None

    def _connected(self) -> MySqlConnection:
        if self._open is None:
            connection = pymysql.connect(
                **self._address.arguments,
                database=self._address.database,
                autocommit=True,
                init_command=_SETTINGS,
                read_timeout=_READ_SECONDS,
                conv=_CONVERSIONS,
            )
            self._open = MySqlConnection(connection)
        return self._open
