"""Views in a PostgreSQL database, each a table of its own name that anyone can select from.

Invariant: a switch of versions is one transaction, so no reader sees a view half rebuilt, whether
it reads through Headwater or selects from the table.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import psycopg

from headwater.errors import UsageError
from headwater.stores.postgres.connection import Connection, PostgresReaders
from headwater.values.keyed import KeyedSchema
from headwater.views.postgres import catalog, tables
from headwater.views.postgres.reading import PostgresReading
from headwater.views.postgres.sink import PostgresSink
from headwater.views.postgres.table_version import TableVersion
from headwater.views.store import Store, check_droppable
from headwater.views.view_version import unknown

RETRY_TIMEOUT = "1 minute"
"""How long a commit waits for a server that does not answer, before its node counts as failed."""
READ_SECONDS = 5.0
"""How long a reader waits for a server that does not answer."""
SWITCH_SECONDS = 600.0
"""How long a switch of versions is tried, while readers are in the middle of long scans."""
INDEX_SECONDS = 5.0
"""How long an index is tried to be made or dropped: the runner that wants it has other nodes to mind."""
_LOCK_TIMEOUT = "SET LOCAL lock_timeout = '2s'"
"""So that those who come to read do not queue up behind one who waits to switch."""


class PostgresStore(Store):
    """The tables that are kept in a database; nothing is connected to before it is used.

    Text is in the order of the database's collation. A table that a ``PostgresSink`` keeps is read
    as a view too; it has changes if the sink was given a ``feed``.
    """

    remote = True

    def __init__(self, dsn: str):
        self._dsn = dsn
        self._readers = PostgresReaders(dsn, "the PostgreSQL view store", READ_SECONDS)
        self._sinks: weakref.WeakSet[PostgresSink] = weakref.WeakSet()

    def names(self) -> list[str]:
        """Return the names of all that is kept in the database, by whichever pipeline."""
        with self._readers.lend() as connection:
            return connection.run(catalog.names)

    def open_sink(self, view: str, keyed: KeyedSchema, version: int | None, feed: int) -> PostgresSink:
        """Return the sink of a view, which is made if it is not there."""
        sink = PostgresSink(
            self._dsn,
            view,
            keyed.schema,
            keyed.key,
            version=version,
            feed=feed,
            retry_timeout=RETRY_TIMEOUT,
            kind="view",
        )
        sink.prepare()
        self._sinks.add(sink)
        return sink

    def index_by(self, view: str, order: str | None, *, version: int | None = None) -> None:
        """Index a version by a column, within the leading columns of its key; None drops the index."""
        with self._readers.lend() as connection:
            done = connection.run(lambda db: tables.has_index(db, catalog.find(db, view, version), order))
        if not done:
            self._change(view, partial(_set_index, view, order, version), INDEX_SECONDS)

    def versions(self, view: str) -> dict[int, bool]:
        """Return the versions of a view, and whether each is the published one."""
        with self._readers.lend() as connection:
            versions = connection.run(partial(_versions, view=view))
        return {entry.version: entry.published for entry in versions}

    def check_replaceable(self, view: str) -> None:
        """Refuse a table that was there before its sink."""
        with self._readers.lend() as connection:
            connection.run(partial(_check_replaceable, view))

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
            connection.run(partial(_exclusively, action))
        finally:
            connection.close()

    @contextmanager
    def reading(self, name: str, version: int | None) -> Iterator[PostgresReading]:
        """Lend a connection on which a view, or one version of it, is read."""
        with self._readers.lend() as connection:
            yield PostgresReading(connection, name, version)


def _check_replaceable(view: str, db: psycopg.Connection) -> None:
    if view in catalog.names(db):
        tables.check_own(catalog.find(db, view))


def _exclusively(action: Callable[[psycopg.Connection], None], db: psycopg.Connection) -> None:
    db.execute(_LOCK_TIMEOUT)
    catalog.prepare(db)
    action(db)


def _set_index(view: str, order: str | None, version: int | None, db: psycopg.Connection) -> None:
    tables.set_index(db, catalog.find(db, view, version), order)


def _drop(view: str, version: int | None, db: psycopg.Connection) -> None:
    catalog.lock(db, view)
    versions = _versions(db, view) if version is None else [catalog.find(db, view, version)]
    check_droppable(versions, version)
    try:
        for entry in versions:
            catalog.remove(db, entry)
    except psycopg.errors.DependentObjectsStillExist as error:
        raise UsageError(
            f'view "{view}" cannot be dropped: something in the database depends on it',
            detail=(error.diag.message_detail or "").splitlines()[0],
            hint="drop that, and make it again on the new version",
        ) from None


def _versions(db: psycopg.Connection, view: str) -> list[TableVersion]:
    """Return every version of a view; one at least."""
    names = catalog.names(db)
    if view not in names:
        raise unknown(view, None, names, [])
    return catalog.of(db, view)
