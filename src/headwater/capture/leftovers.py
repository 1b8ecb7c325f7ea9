"""What a topic has and its table may not have any more: keys that a new snapshot does not find are deleted.

Invariant: a key that a chunk has found, or that the stream has changed since, is none.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.values.keys import key_bytes


class Leftovers:
    """The keys of a topic that were not found yet."""

    def __init__(self, keys: pa.Table):
        self._keys = keys
        columns = [keys.column(name).combine_chunks() for name in keys.schema.names]
        self._names = key_bytes(columns)
        self._left = np.ones(len(keys), bool)

    def take(self, rows: pa.RecordBatch) -> None:
        """Take in that some keys are there, or have been changed."""
        columns = [pc.cast(rows.column(field.name), field.type) for field in self._keys.schema]
        there = pc.is_in(self._names, key_bytes(columns))
        self._left &= ~there.to_numpy(zero_copy_only=False)

    def clear(self) -> None:
        """Take in that nothing of what the topic had is left."""
        self._left[:] = False

    def rest(self) -> pa.Table:
        """Return those that were not found."""
        return self._keys.filter(pa.array(self._left))
