"""The ordinary connection beside a stream: for the catalog, the slot and snapshots.

Invariant: what a value looks like as text does not depend on the settings of the server or of its user; both
connections have the same settings. An action is repeated only where its connection had broken unnoticed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

import psycopg
from psycopg import conninfo

from headwater.capture.postgres.failures import source_error
from headwater.stores.postgres.connection import checked, parts

_T = TypeVar("_T")
_SETTINGS: Final = (
    "-c datestyle=ISO -c intervalstyle=postgres -c extra_float_digits=1 -c bytea_output=hex"
    " -c synchronous_commit=local -c wal_sender_timeout=5min"
)
"""Commits are of publications and of marks in the log: no standby needs them. The last is how long the
server waits for a reader that copies a large chunk between two reads."""


class PostgresSession:
    """A connection to the database that is captured, for one thread."""

    def __init__(self, url: str, title: str):
        self.dsn = _with_settings(url)
        self._title = title
        self._open: psycopg.Connection | None = None

    def run(self, action: Callable[[psycopg.Connection], _T]) -> _T:
        """Run an action in a transaction."""
        used = self._open is not None
        try:
            return self._attempt(action)
        except psycopg.Error as error:
            broken = self._open is None or self._open.closed
            self.close()
            if not (used and broken):
                raise source_error(error, self._title) from None
        return self.run(action)

    def close(self) -> None:
        """Close what is open."""
        if self._open is not None:
            self._open.close()
            self._open = None

    def _attempt(self, action: Callable[[psycopg.Connection], _T]) -> _T:
        if self._open is None:
            self._open = psycopg.connect(self.dsn)
        with self._open.transaction():
            return action(self._open)


def title_of(url: str) -> str:
    """Return how messages name a database: without a secret."""
    settings = parts(url)
    where = ":".join(filter(None, (settings.get("host"), settings.get("port"))))
    name = settings.get("dbname") or settings.get("user") or "postgres"
    return f'PostgreSQL database "{name}"' + (f" on {where}" if where else "")


def _with_settings(url: str) -> str:
    settings = parts(checked(url))
    options = f"{settings.pop('options', '')} {_SETTINGS}".strip()
    return conninfo.make_conninfo(**{**settings, "options": options, "client_encoding": "UTF8"})
