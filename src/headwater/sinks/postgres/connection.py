"""A connection to PostgreSQL that is made anew when it breaks, for as long as patience lasts.

Invariant: an action is repeated only as a whole, on a new connection, so it must find out by itself
what an attempt before has left. No error carries the connection string, which may hold a password.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import TypeVar

import psycopg
from psycopg import conninfo

from headwater.errors import RowError, SinkUnavailable, UsageError

_T = TypeVar("_T")
_SHORTEST, _LONGEST = 0.05, 2.0
_IN_VAIN = ("authentication failed", "does not exist", "pg_hba.conf", "permission denied")
"""What waiting does not mend, though it is told while connecting."""
_HANGING_MILLISECONDS = 60_000
"""After this the server ends a transaction whose runner hangs in the middle, so that another can begin."""


class Connection:
    """One connection, for one thread."""

    def __init__(self, dsn: str, what: str, patience: float):
        self._dsn, self._what, self._patience = _checked(dsn), what, patience
        self._open: psycopg.Connection | None = None

    def run(self, action: Callable[[psycopg.Connection], _T]) -> _T:
        """Run an action in a transaction; if the connection breaks, again on a new one."""
        deadline, pause = time.monotonic() + self._patience, _SHORTEST
        while True:
            try:
                return self._attempt(action)
            except (psycopg.OperationalError, psycopg.InterfaceError) as error:
                self.close()
                if any(told in str(error) for told in _IN_VAIN) or time.monotonic() + pause > deadline:
                    raise self._unavailable(error) from None
            except (psycopg.DataError, psycopg.IntegrityError) as error:
                raise RowError(f"a row does not fit {self._what}", detail=_first_line(error)) from None
            except psycopg.Error as error:
                raise self._unavailable(error) from None
            time.sleep(pause)
            pause = min(pause * 2, _LONGEST)

    def listen(self) -> None:
        """Let ``wait`` know of the commits of sinks from now on."""
        self.run(lambda db: db.execute("LISTEN headwater_sinks"))

    def wait(self, timeout: float) -> None:
        """Return after the next commit of a sink, or when the time is over or the connection breaks."""
        try:
            if self._open is not None:
                deque(self._open.notifies(timeout=timeout, stop_after=1), maxlen=0)
        except psycopg.OperationalError:
            self.close()

    def close(self) -> None:
        """Close what is open."""
        if self._open is not None:
            self._open.close()
            self._open = None

    def _attempt(self, action: Callable[[psycopg.Connection], _T]) -> _T:
        if self._open is None:
            self._open = psycopg.connect(
                self._dsn,
                connect_timeout=10,
                options=f"-c idle_in_transaction_session_timeout={_HANGING_MILLISECONDS} -c timezone=UTC",
            )
        with self._open.transaction():
            return action(self._open)

    def _unavailable(self, error: psycopg.Error) -> SinkUnavailable:
        return SinkUnavailable(
            f"{self._what} cannot be used",
            detail=_first_line(error),
            hint="see whether the server runs and accepts connections, and what its log says",
        )


def _checked(dsn: str) -> str:
    try:
        conninfo.conninfo_to_dict(dsn)
    except psycopg.ProgrammingError:
        raise UsageError(
            "invalid PostgreSQL connection string", hint='write it as "postgresql://user@host:5432/database"'
        ) from None
    return dsn


def _first_line(error: psycopg.Error) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
