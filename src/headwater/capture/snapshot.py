"""Snapshots beside the stream: the rows that a table has, a chunk at a time, while it goes on changing.

A chunk is read at one moment. Until the stream has passed that moment, the keys that it changes are noted;
then the rows of the chunk are stored, but for those keys: of them the stream has told something newer, or the
same. So a snapshot neither stops the stream nor locks a table, and goes on behind its last chunk after a
crash. Invariant: a row of a chunk is never stored behind a newer one of its key, and what the topic has when
the stream has passed the last chunk is what the table had there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.capture.change import SnapshotChunk, TableChanges
from headwater.capture.source import CaptureSource
from headwater.capture.state import SnapshotProgress
from headwater.values.keys import key_bytes

CHUNK_ROWS = 50_000


class PendingSnapshots:
    """The snapshots that are still to be made, one after the other."""

    def __init__(self, source: CaptureSource, tables: Iterable[str]):
        self._source = source
        self._pending = list(tables)
        self._chunk: SnapshotChunk | None = None
        self._changed: list[pa.Array] = []
        """The keys that the stream has changed since the chunk was read."""

    @property
    def pending(self) -> Sequence[str]:
        """The tables of which rows are missing, the one at hand first."""
        return self._pending

    def add(self, table: str) -> None:
        """Make a snapshot of another table, after those that are pending."""
        if table not in self._pending:
            self._pending.append(table)

    def read(self, progress: SnapshotProgress) -> None:
        """Read the next chunk of the table at hand, if none waits to be stored."""
        if self._pending and self._chunk is None:
            self._chunk = self._source.chunk(self._pending[0], progress.after, CHUNK_ROWS)
            self._changed = []

    def note(self, changes: TableChanges) -> None:
        """Take in what the stream has changed."""
        if self._chunk is not None and changes.table.name == self._pending[0] and len(changes):
            self._changed.append(_keys(changes.rows, changes.table.key))

    def note_truncation(self, table: str) -> None:
        """Take in that a table was emptied: what was read of it before is not there any more."""
        if self._chunk is not None and table == self._pending[0]:
            self._chunk = replace(self._chunk, rows=self._chunk.rows.slice(0, 0), unfit={})

    def rows(self, table: str, key: Sequence[str], keys: set[bytes]) -> dict[bytes, Mapping[str, Any]]:
        """Return the rows of some keys that wait to be stored."""
        if self._chunk is None or table != self._pending[0] or not len(self._chunk.rows):
            return {}
        names = _keys(self._chunk.rows, key)
        asked = pc.is_in(names, pa.array(list(keys), names.type))
        found = self._chunk.rows.filter(asked).to_pylist()
        return dict(zip(names.filter(asked).to_pylist(), found, strict=True))

    def due(self, position: str) -> bool:
        """Tell whether the stream has passed the moment of the chunk."""
        return self._chunk is not None and self._source.passed(position, self._chunk.end)

    def take(self, key: Sequence[str]) -> tuple[str, SnapshotChunk]:
        """Return the table at hand, and its chunk without the keys that were changed meanwhile."""
        assert self._chunk is not None
        table, chunk, self._chunk = self._pending[0], self._chunk, None
        if chunk.last:
            self._pending.pop(0)
        return table, _without(chunk, key, self._changed)

    def drop(self, table: str) -> None:
        """Leave a table out, whatever of it is missing."""
        if self._pending and self._pending[0] == table:
            self._chunk = None
        self._pending = [each for each in self._pending if each != table]


def _keys(rows: pa.RecordBatch, key: Sequence[str]) -> pa.Array:
    return key_bytes([rows.column(name) for name in key])


def _without(chunk: SnapshotChunk, key: Sequence[str], changed: list[pa.Array]) -> SnapshotChunk:
    if not changed or not len(chunk.rows):
        return chunk
    keep = pc.invert(pc.is_in(_keys(chunk.rows, key), pa.concat_arrays(changed)))
    kept = np.flatnonzero(keep.to_numpy(zero_copy_only=False))
    numbers = dict(zip(kept.tolist(), range(len(kept)), strict=True)) if chunk.unfit else {}
    unfit = {numbers[row]: why for row, why in chunk.unfit.items() if row in numbers}
    return replace(chunk, rows=chunk.rows.filter(keep), unfit=unfit)
