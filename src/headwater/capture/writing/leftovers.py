"""What a topic has and its table may not have any more: keys that a new snapshot does not find are deleted.

Invariant: a key that a chunk has found, or that the stream has changed since, is none.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.capture.writing.captured_table import CapturedTable


class Leftovers:
    """The keys of a topic that were not found yet."""

    def __init__(self, keys: pa.Table, captured: CapturedTable):
        self._keys, self._captured = keys, captured
        self._names = captured.key_names(keys)
        self._left = np.ones(len(keys), bool)

    def take(self, rows: pa.RecordBatch) -> None:
        """Take in that some keys are there, or have been changed."""
        there = pc.is_in(self._names, self._captured.key_names(rows))
        self._left &= ~there.to_numpy(zero_copy_only=False)

    def left(self, keys: Iterable[bytes]) -> set[bytes]:
        """Return those of some keys that were not found."""
        asked = pc.is_in(self._names, pa.array(list(keys), self._names.type))
        return set(self._names.filter(pc.and_(asked, pa.array(self._left))).to_pylist())

    def clear(self) -> None:
        """Take in that nothing of what the topic had is left."""
        self._left[:] = False

    def rest(self) -> pa.Table:
        """Return those that were not found."""
        return self._keys.filter(pa.array(self._left))
