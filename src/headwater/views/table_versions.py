"""The versions of a table in a database as a target: those of a store of views, which has them anyway.

Invariant: as the store's, a switch is one transaction.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from headwater.errors import UsageError
from headwater.sinks.sink import Sink
from headwater.sinks.versions import TargetVersions
from headwater.views.store import Store


class TableVersions(TargetVersions):
    """The versions of one table of a store."""

    def __init__(self, table: str, store: Callable[[], Store], sink: Callable[[pa.Schema, int], Sink]):
        self._table, self._store, self._sink = table, store, sink

    def published(self) -> int:
        """Return the version that readers see."""
        with self._store() as store:
            return next((number for number, shown in _versions(store, self._table).items() if shown), 1)

    def open(self, schema: pa.Schema, version: int) -> Sink:
        """Return the sink of a version."""
        return self._sink(schema, version)

    def prepare(self, version: int) -> None:
        """Drop what an unfinished rebuild left."""
        with self._store() as store:
            store.check_replaceable(self._table)
            _drop_unpublished(store, self._table)

    def publish(self, schema: pa.Schema, version: int) -> None:
        """Let the version and the published one change places, in one transaction, and drop the old one."""
        with self._store() as store:
            store.publish(self._table, version)
            _drop_unpublished(store, self._table)


def _versions(store: Store, table: str) -> dict[int, bool]:
    try:
        return store.versions(table)
    except UsageError:  # it has never been written to
        return {}


def _drop_unpublished(store: Store, table: str) -> None:
    for number, shown in _versions(store, table).items():
        if not shown:
            store.drop(table, number)
