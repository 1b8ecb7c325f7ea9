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
from headwater.capture.writing.captured_table import CapturedTable

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

    def note(self, changes: TableChanges, captured: CapturedTable) -> None:
        """Take in what the stream has changed."""
        if self._chunk is not None and captured.table == self._pending[0] and len(changes):
            self._changed.append(captured.key_names(changes.rows))

    def note_truncation(self, table: str) -> None:
        """Take in that a table was emptied: what was read of it before is not there any more."""
        if self._chunk is not None and table == self._pending[0]:
            self._chunk = replace(self._chunk, rows=self._chunk.rows.slice(0, 0), unfit={})

    def rows(self, captured: CapturedTable, keys: set[bytes]) -> dict[bytes, Mapping[str, Any]]:
        """Return the rows of some keys that wait to be stored."""
        if self._chunk is None or captured.table != self._pending[0] or not len(self._chunk.rows):
            return {}
        names = captured.key_names(self._chunk.rows)
        asked = pc.is_in(names, pa.array(list(keys), names.type))
        if self._changed:  # of which the topic has something newer
            asked = pc.and_(
                asked, pc.invert(pc.is_in(names, pa.concat_arrays(self._changed), skip_nulls=True))
            )
        found = self._chunk.rows.filter(asked).to_pylist()
        return dict(zip(names.filter(asked).to_pylist(), found, strict=True))

    def due(self, position: str) -> bool:
        """Tell whether the stream has passed the moment of the chunk."""
        return self._chunk is not None and self._source.passed(position, self._chunk.end)

    def take(self, captured: CapturedTable | None) -> SnapshotChunk:
        """Return the chunk of the table at hand without the keys that were changed meanwhile.

        Of an outbox, which is no captured table, all of it: what has become of a row is no matter there.
        """
        assert self._chunk is not None
        chunk, self._chunk = self._chunk, None
        if chunk.last:
            self._pending.pop(0)
        return chunk if captured is None else _without(chunk, captured, self._changed)

    def drop(self, table: str) -> None:
        """Leave a table out, whatever of it is missing."""
        if self._pending and self._pending[0] == table:
            self._chunk = None
        self._pending = [each for each in self._pending if each != table]


def _without(chunk: SnapshotChunk, captured: CapturedTable, changed: list[pa.Array]) -> SnapshotChunk:
    if not changed or not len(chunk.rows):
        return chunk
    names = captured.key_names(chunk.rows)
    keep = pc.invert(pc.is_in(names, pa.concat_arrays(changed), skip_nulls=True))
    kept = np.flatnonzero(keep.to_numpy(zero_copy_only=False))
    numbers = dict(zip(kept.tolist(), range(len(kept)), strict=True)) if chunk.unfit else {}
    unfit = {numbers[row]: why for row, why in chunk.unfit.items() if row in numbers}
    return replace(chunk, rows=chunk.rows.filter(keep), unfit=unfit)
