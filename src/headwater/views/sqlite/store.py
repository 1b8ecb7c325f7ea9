"""The view store that every pipeline has: one SQLite file, any number of readers, one writer.

Invariant: a switch of versions is one transaction, so no reader sees a view half rebuilt.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from headwater.stores import limits
from headwater.stores.sqlite.connection import Durability, SqliteReaders, Writer
from headwater.values.keyed import KeyedSchema
from headwater.views.query import index_columns
from headwater.views.sqlite import catalog
from headwater.views.sqlite.reading import SqliteReading
from headwater.views.sqlite.sink import SqliteSink
from headwater.views.store import Store, Views, check_droppable, existing
from headwater.views.view_version import check_same


class FileViews(Views):
    """The views of a SQLite file, for reading."""

    def __init__(self, path: str | os.PathLike[str]):
        self._readers = SqliteReaders(Path(path))

    def names(self) -> list[str]:
        """Return the names of all views."""
        with self._readers.snapshot() as db:
            return catalog.names(db)

    def versions(self, view: str) -> dict[int, bool]:
        """Return the versions of a view, and whether each is the published one."""
        with self._readers.snapshot() as db:
            versions = catalog.of(db, view)
            if not versions:
                raise catalog.unknown(db, view, None)
        return {entry.version: entry.published for entry in versions}

    def close(self) -> None:
        """Close the connections that are not in use."""
        self._readers.close()

    @contextmanager
    def reading(self, name: str, version: int | None) -> Iterator[SqliteReading]:
        """Lend a connection on which a view, or one version of it, is read."""
        with self._readers.lend() as db:
            yield SqliteReading(db, name, version)


class ViewStore(FileViews, Store):
    """The views of one pipeline, for the runner that writes them.

    The file is made if it is not there. Any process may read with ``open_views`` meanwhile. With
    ``durability="fsync"`` a commit has reached the disk when it returns; ``"os"`` leaves that to the
    operating system: it survives ``kill -9``, and a power loss takes the newest commits, whole.

    >>> import tempfile, pyarrow as pa
    >>> from headwater.sinks import Batch
    >>> store = ViewStore(tempfile.mkdtemp() + "/views.db")
    >>> sink = store.sink("stock", "item STRING, count BIGINT", key="item")
    >>> sink.begin()
    -1
    >>> sink.commit(Batch(0, pa.table({"item": ["tea", "rum"], "count": [3, 1]})))
    True
    >>> sink.commit(Batch(0, pa.table({"item": ["tea", "rum"], "count": [3, 1]})))
    False
    >>> store.view("stock").get("tea")
    {'item': 'tea', 'count': 3}
    >>> store.close()
    """

    def __init__(self, path: str | os.PathLike[str], *, durability: Durability = "fsync"):
        self.path = Path(path)
        self._writer = Writer(self.path, durability)
        super().__init__(self.path)

    def open_sink(self, view: str, keyed: KeyedSchema, version: int | None, feed: int) -> SqliteSink:
        """Return the sink of a view, which is made if it is not there."""
        limits.check_sqlite(keyed)
        with self._writer.transaction() as db:
            entry = existing(catalog.of(db, view), version, keyed.what)
            if entry is None:
                entry = catalog.add(db, view, version or 1, keyed)
        check_same(entry, keyed)
        return SqliteSink(self._writer, entry, feed)

    def index_by(self, view: str, order: str | None, *, version: int | None = None) -> None:
        """Index a version by a column, within the leading columns of its key; None drops the index."""
        with self._writer.transaction() as db:
            tables = catalog.find(db, view, version).tables
            tables.set_index(db, index_columns(tables.keyed, order))

    def publish(self, view: str, version: int) -> None:
        """Let readers see a version from now on, and no longer the one before."""
        with self._writer.transaction() as db:
            catalog.publish(db, catalog.find(db, view, version))

    def drop(self, view: str, version: int | None = None) -> None:
        """Remove a version that is not published, or the whole view if no version is named."""
        with self._writer.transaction() as db:
            versions = catalog.of(db, view) if version is None else [catalog.find(db, view, version)]
            if not versions:
                raise catalog.unknown(db, view, version)
            check_droppable(versions, version)
            for entry in versions:
                catalog.remove(db, entry)

    def close(self) -> None:
        """Release the file; sinks and views made from here are of no use after that."""
        super().close()
        self._writer.close()
