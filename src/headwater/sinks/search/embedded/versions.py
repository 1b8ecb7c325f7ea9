"""The versions of an embedded index: tables side by side in its file.

Invariant: a switch is one transaction, in which the old tables are dropped, too.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa

from headwater.sinks import crash
from headwater.sinks.search.embedded import tables
from headwater.sinks.search.embedded.sink import SearchSink
from headwater.sinks.sink import Sink
from headwater.sinks.versions import TargetVersions
from headwater.stores.sqlite.connection import Writer


class SearchVersions(TargetVersions):
    """The versions of the index in a directory."""

    def __init__(self, directory: str | Path, key: str | tuple[str, ...], text: str | Sequence[str]):
        self._directory, self._declared = Path(directory), (key, text)

    def published(self) -> int:
        """Return the version that readers see."""
        with self._transaction() as db:
            reached = tables.progress(db)
        return 1 if reached is None else reached.version

    def open(self, schema: pa.Schema, version: int) -> Sink:
        """Return the sink of a version."""
        return SearchSink(self._directory, schema, *self._declared, version=version)

    def prepare(self, version: int) -> None:
        """Drop the tables that an unfinished rebuild left."""
        with self._transaction() as db:
            tables.drop_unpublished(db)

    def publish(self, schema: pa.Schema, version: int) -> None:
        """Let readers see a version, and drop the tables of the one before."""
        crash.point("search: before the switch")
        with self._transaction() as db:
            tables.publish(db, version)
            crash.point("search: in the switch")

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        writer = Writer(tables.file_of(self._directory), "fsync", tables.KIND)
        try:
            with writer.transaction() as db:
                yield db
        finally:
            writer.close()
