"""Finds out which rows two sides do not share, by digests: only rows that differ are looked at closer.

One side is given whole, as Arrow; the other comes batch by batch, however large it is. Of a row that is
found on both sides nothing is kept but that it was found. A digest is of the row's JSON text, so that rows
which are equal and written otherwise (0.0 and -0.0, the members of free JSON) are left to
``compare.py``. No pyspark.

Invariant: a row that is on one side only, or there once more than on the other, is never taken for equal,
but for two rows of one digest of 64 bits.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.topic import Topic
from headwater.values import jsonl

Digests = npt.NDArray[np.uint64]


class RowMatcher:
    """Matches rows that come batch by batch with those that there should be."""

    def __init__(self, expected: pa.Table):
        self._expected, self._schema = expected, expected.schema
        digests = digests_of(expected.to_batches(), self._schema)
        self._order = np.argsort(digests, kind="stable")
        self._sorted = digests[self._order]
        self._found = np.zeros(len(digests), bool)
        self._unmatched: list[pa.RecordBatch] = []

    def take(self, rows: pa.RecordBatch) -> None:
        """Match the next rows."""
        if not len(rows):
            return
        batch = _fitted(rows, self._schema)
        digests = digests_of([batch], self._schema)
        at = np.searchsorted(self._sorted, digests)
        places = np.minimum(at, max(len(self._sorted) - 1, 0))
        known = (at < len(self._sorted)) & (self._sorted[places] == digests if len(self._sorted) else False)
        first = np.zeros(len(batch), bool)
        first[np.unique(digests, return_index=True)[1]] = True  # the same row twice is there once too often
        matched = known & first
        matched[matched] = ~self._found[places[matched]]
        self._found[places[matched]] = True
        if not matched.all():
            self._unmatched.append(batch.filter(pa.array(~matched)))

    @property
    def equal(self) -> int:
        """How many rows were found on both sides."""
        return int(self._found.sum())

    def missing(self) -> pa.Table:
        """Return the rows that should be there and were not found as they are."""
        left = np.ones(len(self._found), bool)
        left[self._order[self._found]] = False
        return self._expected.filter(pa.array(left))

    def unmatched(self) -> pa.Table:
        """Return the rows that were found and should not be there as they are."""
        return pa.Table.from_batches(self._unmatched, schema=self._schema)


def digests_of(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Digests:
    """Return a number for each row that other rows do not have."""
    from pandas.util import hash_array  # which takes half a second to load

    topic, parts = Topic("rows", (schema,)), [np.zeros(0, np.uint64)]
    for batch in batches:
        if len(batch):
            parts.append(hash_array(np.array(jsonl.encode(batch, topic), object), categorize=False))
    return np.concatenate(parts)


def _fitted(rows: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return rows in the columns of the other side."""
    columns = [rows.column(field.name).cast(field.type) for field in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
