"""Views in a PostgreSQL database, each a table of its own name that anyone can select from.

Invariant: a switch of versions is one transaction, so no reader sees a view half rebuilt, whether
it reads through Headwater or selects from the table.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import psycopg
import pyarrow as pa

from headwater import topic as topics
from headwater.errors import UsageError
from headwater.stores.postgres.connection import Connection, PostgresReaders
from headwater.views.postgres import catalog, tables
from headwater.views.postgres.reading import PostgresReading
from headwater.views.postgres.sink import PostgresSink
from headwater.views.postgres.table_version import TableVersion
from headwater.views.store import Store, check_droppable
from headwater.views.view import View
from headwater.views.view_version import KEPT_CHANGES, check_numbers, unknown

PATIENCE = "1 minute"
"""How long a commit waits for a server that does not answer, before its node counts as failed."""
READ_SECONDS = 5.0
"""How long a reader waits for a server that does not answer."""
SWITCH_SECONDS = 600.0
"""How long a switch of versions is tried, while readers are in the middle of long scans."""
ARRANGE_SECONDS = 5.0
"""How long an index is tried to be made or dropped: the runner that wants it has other nodes to mind."""
_LOCK_TIMEOUT = "SET LOCAL lock_timeout = '2s'"
"""So that those who come to read do not queue up behind one who waits to switch."""


class PostgresStore(Store):
    """The tables that are kept in a database; nothing is connected to before it is used.

    Text is in the order of the database's collation. A table that a ``PostgresSink`` keeps is read
    as a view too; it has changes if the sink was given a ``feed``.
    """

    def __init__(self, dsn: str):
        self._dsn = dsn
        self._readers = PostgresReaders(dsn, "the PostgreSQL view store", READ_SECONDS)
        self._sinks: weakref.WeakSet[PostgresSink] = weakref.WeakSet()

    def names(self) -> list[str]:
        """Return the names of all that is kept in the database, by whichever pipeline."""
        with self._readers.lend() as connection:
            return connection.run(catalog.names)

    def view(self, name: str, version: int | None = None) -> View:
        """Return a view: what is published, or one version of it."""
        return View(name, partial(self._reading, name, version))

    def sink(
        self,
        view: str,
        schema: str | pa.Schema,
        key: str | tuple[str, ...],
        *,
        version: int | None = None,
        feed: int = KEPT_CHANGES,
    ) -> PostgresSink:
        """Return the sink of a view, which is made if it is not there."""
        topics.check_name("view", view)
        check_numbers(version, feed)
        how: dict[str, Any] = {"version": version, "feed": feed, "patience": PATIENCE, "kind": "view"}
        made = PostgresSink(self._dsn, view, schema, key, **how)
        made.prepare()
        self._sinks.add(made)
        return made

    def arrange(self, view: str, order: str | None, *, version: int | None = None) -> None:
        """Keep a version in the order of a column too, within the leading columns of its key."""
        with self._readers.lend() as connection:
            done = connection.run(lambda db: tables.is_arranged(db, catalog.find(db, view, version), order))
        if not done:
            arranged = partial(_arrange, view, order, version)
            self._change(view, arranged, ARRANGE_SECONDS)

    def versions(self, view: str) -> dict[int, bool]:
        """Return the versions of a view, and whether each is the published one."""
        with self._readers.lend() as connection:
            found = connection.run(partial(_all, view=view))
        return {entry.version: entry.published for entry in found}

    def publish(self, view: str, version: int) -> None:
        """Let readers see a version from now on, and no longer the one before."""

        self._change(view, lambda db: catalog.publish(db, view, version))

    def drop(self, view: str, version: int | None = None) -> None:
        """Remove a version that is not published, or the whole view if no version is named."""

        self._change(view, partial(_drop, view, version))

    def close(self) -> None:
        """Close all connections; sinks made from here are of no use after that."""
        self._readers.close()
        for sink in list(self._sinks):
            sink.close()

    def _change(
        self, view: str, action: Callable[[psycopg.Connection], None], seconds: float = SWITCH_SECONDS
    ) -> None:
        connection = Connection(self._dsn, f'view "{view}"', seconds)
        try:
            connection.run(partial(_alone, action))
        finally:
            connection.close()

    @contextmanager
    def _reading(self, name: str, version: int | None) -> Iterator[PostgresReading]:
        with self._readers.lend() as connection:
            yield PostgresReading(connection, name, version)


def _alone(action: Callable[[psycopg.Connection], None], db: psycopg.Connection) -> None:
    db.execute(_LOCK_TIMEOUT)
    catalog.prepare(db)
    action(db)


def _arrange(view: str, order: str | None, version: int | None, db: psycopg.Connection) -> None:
    tables.arrange(db, catalog.find(db, view, version), order)


def _drop(view: str, version: int | None, db: psycopg.Connection) -> None:
    catalog.lock(db, view)
    found = _all(db, view) if version is None else [catalog.find(db, view, version)]
    check_droppable(found, version)
    try:
        for entry in found:
            catalog.remove(db, entry)
    except psycopg.errors.DependentObjectsStillExist as error:
        raise UsageError(
            f'view "{view}" cannot be dropped: something in the database depends on it',
            detail=(error.diag.message_detail or "").splitlines()[0],
            hint="drop that, and make it again on the new version",
        ) from None


def _all(db: psycopg.Connection, view: str) -> list[TableVersion]:
    """Return every version of a view; one at least."""
    known = catalog.names(db)
    if view not in known:
        raise unknown(view, None, known, [])
    return catalog.of(db, view)
