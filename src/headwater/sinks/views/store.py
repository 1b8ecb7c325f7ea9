"""The view store: all views of a pipeline in one SQLite file, each in one or more versions.

A rebuild writes version n+1 beside n, while readers go on with n, and then the two change places.
Invariant: a switch of versions is one transaction, so no reader sees a view half rebuilt.
"""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa

from headwater import schema as schemas
from headwater.closing import Closing
from headwater.errors import SchemaError, UsageError
from headwater.log import topic as topics
from headwater.sinks.keyed import Keyed, declare
from headwater.sinks.views import catalog
from headwater.sinks.views.catalog import Entry
from headwater.sinks.views.connection import Durability, Readers, Writer
from headwater.sinks.views.sink import ViewSink
from headwater.sinks.views.view import View

KEPT_CHANGES = 100_000


class ViewStore(Closing):
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
        self._readers = Readers(self.path)

    def sink(
        self,
        view: str,
        schema: str | pa.Schema,
        key: str | tuple[str, ...],
        *,
        version: int | None = None,
        feed: int = KEPT_CHANGES,
    ) -> ViewSink:
        """Return the sink of a view, which is made if it is not there.

        Without ``version`` it is the published one; a view's first version is published at once.
        At least the last ``feed`` changes are kept. A version keeps its columns and its key: to
        change them, build another version.
        """
        topics.check_name("view", view)
        _check_numbers(version, feed)
        keyed = declare(f'view "{view}"', schema, key)
        with self._writer.transaction() as db:
            entry = _existing(catalog.of(db, view), version)
            if entry is None:
                entry = catalog.add(db, view, version or 1, keyed)
        _check_same(entry, keyed)
        return ViewSink(self._writer, entry, feed)

    def versions(self, view: str) -> dict[int, bool]:
        """Return the versions of a view, and whether each is the published one."""
        with self._readers.snapshot() as db:
            found = catalog.of(db, view)
            if not found:
                raise catalog.unknown(db, view, None)
        return {entry.version: entry.published for entry in found}

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
            if version is not None and found[0].published:
                raise UsageError(
                    f'version {version} of view "{view}" is published and cannot be dropped',
                    hint="publish another version first, or drop the view by leaving the version out",
                )
            for entry in found:
                catalog.remove(db, entry)

    def view(self, name: str, version: int | None = None) -> View:
        """Return a view for reading: what is published, or one version."""
        return View(self._readers, name, version)

    def close(self) -> None:
        """Release the file; sinks and views made from here are of no use after that."""
        self._readers.close()
        self._writer.close()


def _existing(found: list[Entry], version: int | None) -> Entry | None:
    for entry in found:
        if entry.published if version is None else entry.version == version:
            return entry
    return None


def _check_numbers(version: int | None, feed: int) -> None:
    if version is not None and not (isinstance(version, int) and 0 < version < 1 << 20):
        raise UsageError(f"a version is a whole number from 1 on, not {version!r:.60}")
    if not isinstance(feed, int) or feed < 1:
        raise UsageError(f"feed is how many changes are kept, at least 1, not {feed!r:.60}")


def _check_same(entry: Entry, keyed: Keyed) -> None:
    there = entry.tables.keyed
    if there.key == keyed.key and there.schema.equals(keyed.schema, check_metadata=True):
        return
    raise SchemaError(
        f'version {entry.version} of view "{entry.name}" has other columns or another key',
        detail=f"it has `{entry.columns}` by ({', '.join(entry.key)}), "
        f"asked for `{schemas.ddl(keyed.schema)}` by ({', '.join(keyed.key)})",
        hint=f"build version {entry.version + 1} and publish it",
    )
