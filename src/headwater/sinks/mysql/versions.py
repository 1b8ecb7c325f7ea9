"""The versions of a table in MySQL: the next one is a table beside it, and both are renamed by one statement.

Invariant: a table that was there before its sink is not replaced; readers find a table of its name at any
moment.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import pyarrow as pa

from headwater.sinks import crash
from headwater.sinks.mysql import catalog
from headwater.sinks.mysql.sink import MySqlSink
from headwater.sinks.sink import Sink
from headwater.sinks.versions import TargetVersions
from headwater.stores.mysql import address
from headwater.stores.mysql.connection import MySqlTransactions, Transaction

_T = TypeVar("_T")
_SECONDS = 60.0


@dataclass(frozen=True)
class MySqlVersions(TargetVersions):
    """The versions of one table of a database."""

    url: str
    table: str
    key: str | tuple[str, ...]

    def published(self) -> int:
        """Return the version that readers see."""
        return self._run(lambda db: catalog.published(db, self.table))

    def open(self, schema: pa.Schema, version: int) -> Sink:
        """Return the sink of a version."""
        return MySqlSink(self.url, self.table, schema, self.key, version=version)

    def prepare(self, version: int) -> None:
        """Drop the table that an unfinished rebuild left."""
        self._run(lambda db: catalog.check_replaceable(db, self.table))
        self._run(lambda db: catalog.drop_others(db, self.table))

    def publish(self, schema: pa.Schema, version: int) -> None:
        """Let a version and the one that readers see change places, and drop the old one."""
        crash.point("mysql: before the switch")
        self._run(lambda db: catalog.switch(db, self.table, version))
        crash.point("mysql: switched")
        self._run(lambda db: catalog.drop_others(db, self.table))

    def _run(self, action: Callable[[Transaction], _T]) -> _T:
        connection = MySqlTransactions(address.parse(self.url), f'table "{self.table}"', _SECONDS)
        try:
            return connection.run(action)
        finally:
            connection.close()
