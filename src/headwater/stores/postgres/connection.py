"""Connections to PostgreSQL that are made anew when they break, for a while.

Invariant: an action is repeated only as a whole, on a new connection, so it must find out by itself
what an attempt before has left. What is tried again is decided in ``failures``.
"""

from __future__ import annotations

import os
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from typing import TypeVar

import psycopg
from psycopg import conninfo

from headwater.backoff import Backoff
from headwater.errors import UsageError
from headwater.stores.postgres import failures

_T = TypeVar("_T")
_BACKOFF = Backoff(0.05, 2.0, jitter=0.0)
_HANGING_MILLISECONDS = 60_000
"""After this the server ends a transaction whose runner hangs in the middle, so that another can begin."""
_IDLE = 8
"""How many reading connections are kept open for the next reader."""


_PARENTS: list[psycopg.Connection] = []
"""Connections that were open when this process was forked: to close one here would end it there too."""


class Connection:
    """One connection, for one thread at a time; a forked process gets one of its own."""

    def __init__(self, dsn: str, what: str, retry_timeout: float):
        self._dsn, self._what, self._retry_timeout = checked(dsn), what, retry_timeout
        self._open: psycopg.Connection | None = None
        self._process = os.getpid()

    def run(self, action: Callable[[psycopg.Connection], _T], most: float | None = None) -> _T:
        """Run an action in a transaction; if the connection breaks, again on a new one."""
        return self._retry(lambda: self._attempt(action), most)

    @contextmanager
    def held(self, action: Callable[[psycopg.Connection], _T]) -> Iterator[_T]:
        """Run an action as ``run`` does, and keep its transaction open for what it has returned."""
        try:
            with ExitStack() as transaction:

                def attempt() -> _T:
                    db = self._connected()
                    with ExitStack() as begun:
                        begun.enter_context(db.transaction())
                        result = action(db)
                        transaction.push(begun.pop_all())
                    return result

                yield self._retry(attempt, None)
        except psycopg.Error as error:  # of what was done with the result
            self.close()
            raise failures.sink_error(error, self._what) from None

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

    def unlisten(self) -> None:
        """End what ``listen`` has begun."""
        with suppress(psycopg.Error):
            if self._open is not None and not self._open.closed:
                self._open.execute("UNLISTEN *")
                self._open.commit()

    def close(self) -> None:
        """Close what is open."""
        self._leave_to_parent()
        if self._open is not None:
            self._open.close()
            self._open = None

    def _retry(self, attempt: Callable[[], _T], most: float | None) -> _T:
        waiting = _BACKOFF.pauses(self._retry_timeout if most is None else min(self._retry_timeout, most))
        while True:
            try:
                return attempt()
            except psycopg.Error as error:
                self.close()
                pause = next(waiting, None) if failures.is_transient(error) else None
                if pause is None:
                    raise failures.sink_error(error, self._what) from None
            time.sleep(pause)

    def _attempt(self, action: Callable[[psycopg.Connection], _T]) -> _T:
        db = self._connected()
        with db.transaction():
            return action(db)

    def _connected(self) -> psycopg.Connection:
        self._leave_to_parent()
        if self._open is None:
            self._open = psycopg.connect(self._dsn)
            # A runner that starts a node again makes another sink, and lets go of the one before.
            weakref.finalize(self, _end, self._open, os.getpid()).atexit = False
        return self._open

    def _leave_to_parent(self) -> None:
        if self._process != os.getpid():
            self._process = os.getpid()
            _PARENTS.extend([self._open] if self._open is not None else [])
            self._open = None


class PostgresReaders:
    """Connections for reading, lent to whoever reads and kept for the next."""

    def __init__(self, dsn: str, what: str, retry_timeout: float):
        self._make = partial(Connection, dsn, what, retry_timeout)
        self._idle = [self._make()]  # says so at once if the URL is wrong

    @contextmanager
    def lend(self) -> Iterator[Connection]:
        """Lend a connection that nobody else uses."""
        try:
            connection = self._idle.pop()
        except IndexError:
            connection = self._make()
        try:
            yield connection
        finally:
            if len(self._idle) < _IDLE:
                self._idle.append(connection)
            else:
                connection.close()

    def close(self) -> None:
        """Close what is not lent."""
        while self._idle:
            self._idle.pop().close()


def checked(dsn: str) -> str:
    """Return a connection string with settings of our own; refuse one that is none.

    A password with an ``@`` or a ``/`` spoils what comes after it, and an error of the server would tell.
    """
    settings = parts(dsn)
    ports = settings.get("port", "").replace(",", "")
    if "@" in settings.get("host", "") + settings.get("dbname", "") or not (ports.isdecimal() or not ports):
        raise UsageError(
            "invalid PostgreSQL connection string", hint="write @ in a password as %40, and / as %2F"
        )
    ours = f"-c idle_in_transaction_session_timeout={_HANGING_MILLISECONDS} -c timezone=UTC"
    options = f"{settings.pop('options', '')} {ours}".strip()
    return conninfo.make_conninfo(**{"connect_timeout": "10", **settings, "options": options})


def without_secrets(dsn: str) -> str:
    """Return a connection string without passwords, which the environment has to give."""
    return conninfo.make_conninfo(**{k: v for k, v in parts(dsn).items() if "password" not in k})


def parts(dsn: str) -> dict[str, str]:
    """Return the settings in a connection string."""
    try:
        return {name: str(value) for name, value in conninfo.conninfo_to_dict(dsn).items()}
    except psycopg.ProgrammingError:
        raise UsageError(
            "invalid PostgreSQL connection string", hint='write it as "postgresql://user@host:5432/database"'
        ) from None


def _end(db: psycopg.Connection, process: int) -> None:
    if os.getpid() == process:
        db.close()
