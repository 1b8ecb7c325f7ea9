"""The view store that every pipeline has: one SQLite file, any number of readers, one writer.

Invariant: a switch of versions is one transaction, so no reader sees a view half rebuilt.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pyarrow as pa

from headwater import topic as topics
from headwater.stores import limits
from headwater.stores.sqlite.connection import Durability, SqliteReaders, Writer
from headwater.values.keyed import declare
from headwater.views.query import arrangement
from headwater.views.sqlite import catalog
from headwater.views.sqlite.reading import SqliteReading
from headwater.views.sqlite.sink import ViewSink
from headwater.views.store import Store, Views, check_droppable, existing
from headwater.views.view import View
from headwater.views.view_version import KEPT_CHANGES, check_numbers, check_same


class FileViews(Views):
    """The views of a SQLite file, for reading."""

    def __init__(self, path: str | os.PathLike[str]):
        self._readers = SqliteReaders(Path(path))

    def names(self) -> list[str]:
        """Return the names of all views."""
        with self._readers.snapshot() as db:
            return catalog.names(db)

    def view(self, name: str, version: int | None = None) -> View:
        """Return a view: what is published, or one version of it."""
        return View(name, partial(self._reading, name, version))

    def versions(self, view: str) -> dict[int, bool]:
        """Return the versions of a view, and whether each is the published one."""
        with self._readers.snapshot() as db:
            found = catalog.of(db, view)
            if not found:
                raise catalog.unknown(db, view, None)
        return {entry.version: entry.published for entry in found}

    def close(self) -> None:
        """Close the connections that are not in use."""
        self._readers.close()

    @contextmanager
    def _reading(self, name: str, version: int | None) -> Iterator[SqliteReading]:
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

    def sink(
        self,
        view: str,
        schema: str | pa.Schema,
        key: str | tuple[str, ...],
        *,
        version: int | None = None,
        feed: int = KEPT_CHANGES,
    ) -> ViewSink:
        """Return the sink of a view, which is made if it is not there."""
        topics.check_name("view", view)
        check_numbers(version, feed)
        keyed = declare(f'view "{view}"', schema, key)
        limits.check_sqlite(keyed)
        with self._writer.transaction() as db:
            entry = existing(catalog.of(db, view), version, keyed.what)
            if entry is None:
                entry = catalog.add(db, view, version or 1, keyed)
        check_same(entry, keyed)
        return ViewSink(self._writer, entry, feed)

    def arrange(self, view: str, order: str | None, *, version: int | None = None) -> None:
        """Keep a version in the order of a column too, within the leading columns of its key."""
        with self._writer.transaction() as db:
            tables = catalog.find(db, view, version).tables
            tables.arrange(db, arrangement(tables.keyed, order))

    def publish(self, view: str, version: int) -> None:
        """Let readers see a version from now on, and no longer the one before."""
        with self._writer.transaction() as db:
            catalog.publish(db, catalog.find(db, view, version))

    def drop(self, view: str, version: int | None = None) -> None:
        """Remove a version that is not published, or the whole view if no version is named."""
        with self._writer.transaction() as db:
            found = catalog.of(db, view) if version is None else [catalog.find(db, view, version)]
            if not found:
                raise catalog.unknown(db, view, version)
            check_droppable(found, version)
            for entry in found:
                catalog.remove(db, entry)

    def close(self) -> None:
        """Release the file; sinks and views made from here are of no use after that."""
        super().close()
        self._writer.close()
