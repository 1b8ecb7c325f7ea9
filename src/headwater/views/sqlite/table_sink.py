"""The sink of a table in an SQLite file of its own: the file is opened when the sink begins.

Invariant: until then nothing is made, so that what a file holds can be read without changing anything.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pyarrow as pa

from headwater.errors import UsageError
from headwater.sinks.sink import Batch, Contents, Sink
from headwater.views.contents import contents_of
from headwater.views.sqlite.store import FileViews, ViewStore


class SqliteTableSink(Sink):
    """Keeps a table by key in an SQLite file, which ``open_views`` reads."""

    def __init__(
        self,
        path: str | Path,
        table: str,
        schema: pa.Schema,
        key: str | tuple[str, ...],
        *,
        version: int | None = None,
    ):
        self._path, self._table, self._version = Path(path), table, version
        self._declared = (schema, key)
        self._store: ViewStore | None = None
        self._sink: Sink | None = None

    def begin(self) -> int:
        """Take over from any other runner; return the number of the last batch committed, or -1."""
        if self._store is None:
            self._store = ViewStore(self._path)
        self._sink = self._store.sink(self._table, *self._declared, version=self._version)
        return self._sink.begin()

    def commit(self, batch: Batch) -> bool:
        """Make a batch visible, whole; return False if it was there before."""
        return self._begun().commit(batch)

    def receipt(self) -> str:
        """Return the number of the last batch."""
        return self._begun().receipt()

    def resume(self, receipt: str) -> str | None:
        """Tell which batches are missing."""
        return self._begun().resume(receipt)

    def read_back(self) -> Contents:
        """Return the rows of the table."""
        if not self._path.exists():
            return Contents()
        views = FileViews(self._path)
        return contents_of(self._table, partial(views.reading, self._table, self._version), views.close)

    def close(self) -> None:
        """Close the file."""
        if self._store is not None:
            self._store.close()
            self._store = self._sink = None

    def _begun(self) -> Sink:
        if self._sink is None:
            raise UsageError(f'sink of view "{self._table}" has not begun', hint="call begin() first")
        return self._sink
