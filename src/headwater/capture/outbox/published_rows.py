"""Which rows of an outbox have become events already, for as long as its snapshot goes on.

A row that was inserted since the capture began comes by the stream, and a chunk may find it too: it must
not be published twice. One that was there before comes by a chunk alone. What happens first to a key since
the last chunk tells which it is: an insertion means that there was none before. Where a key goes and comes
again beside a chunk, the chunk may have either of the two rows, and they are compared.

Invariant: a row of a chunk is unpublished if neither the stream nor an earlier chunk, also before a restart,
has published it, whatever becomes of it meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from headwater.capture.change import INSERT, Codes, Numbers


class PublishedRows:
    """Rows that are events, by the names of their keys; those that the topic has at the beginning are."""

    def __init__(self, names: Iterable[bytes] = ()):
        self._published = set(names)
        self._there = set[bytes]()
        """Keys that there were before the stream told of them."""
        self._again: dict[bytes, list[dict[str, Any]]] = {}
        """Rows that have come under such a key."""

    def note(self, names: Sequence[bytes], operation: Codes, rows: pa.RecordBatch) -> None:
        """Take in what the stream tells.

        Row by row, and only as long as a snapshot goes on: the order decides what a key is.
        """
        if not self._there and bool((operation == INSERT).all()):
            self._published.update(names)
            return
        for number, (name, what) in enumerate(zip(names, operation.tolist(), strict=True)):
            if name in self._published:
                continue
            if what != INSERT:
                self._there.add(name)
            elif name in self._there:
                self._again.setdefault(name, []).append(_row(rows, number))
            else:
                self._published.add(name)

    def unpublished(self, names: Sequence[bytes], rows: pa.RecordBatch) -> Numbers:
        """Return the numbers of a chunk's rows that are no events yet."""
        found = [
            number
            for number, name in enumerate(names)
            if name not in self._published
            and (name not in self._again or _row(rows, number) not in self._again[name])
        ]
        return np.array(found, np.int64)

    def pass_chunk(self) -> None:
        """Take in that a chunk is stored: what the next one finds was read later than all until now."""
        self._published.update(self._again)
        self._there.clear()
        self._again.clear()


def _row(rows: pa.RecordBatch, number: int) -> dict[str, Any]:
    row: dict[str, Any] = rows.slice(number, 1).to_pylist()[0]
    return row
