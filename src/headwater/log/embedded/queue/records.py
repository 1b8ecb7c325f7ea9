"""Records of one partition as a queue needs them: onwards from its cursor, and here and there again.

Batches that were decoded are kept for a while, within a bound: consumers that share a partition take few
records at a time, and those that are delivered again, or by priority, lie anywhere. Invariant: what is
returned is what the log holds at these offsets; a record that is gone is missing, never replaced.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.errors import OffsetLost
from headwater.log.embedded.stream import RecordReader

RECENT_BYTES, RECENT = 64 << 20, 64
"""How much of what was decoded is kept, in bytes and in batches."""
BLOCK = 1024
"""Records that lie anywhere are read in blocks of at least so many: their neighbours will be wanted too."""


class _Decoded(NamedTuple):
    """A batch with its offsets."""

    batch: pa.RecordBatch
    offsets: npt.NDArray[np.int64]
    first: int
    last: int


class PartitionRecords:
    """Reads one partition, which ``open`` opens at an offset."""

    def __init__(self, open: Callable[[int], RecordReader], columns: Callable[[], Sequence[str]]):
        self._open, self._columns = open, columns
        self._names: Sequence[str] = ()
        self._reader: RecordReader | None = None
        self._recent: deque[_Decoded] = deque()
        self._bytes = 0

    def following(self, offset: int, limit: int) -> pa.RecordBatch | None:
        """Return up to ``limit`` records from an offset on, or None where the log ends."""
        decoded = self._covering(offset)
        if decoded is None:
            if self._reader is None or self._reader.offset != offset:
                self.close()
                self._reader = self._open(offset)
            batch = self._reader.next()
            if batch is None:
                return None
            decoded = self._remember(batch)
        first = int(np.searchsorted(decoded.offsets, offset))
        return decoded.batch.slice(first, limit)

    def at(self, offsets: Iterable[int]) -> dict[int, pa.RecordBatch]:
        """Return the record at each of the offsets, those that are gone left out."""
        found: dict[int, pa.RecordBatch] = {}
        for offset in sorted(offsets):  # one by one: they lie anywhere, and are few
            decoded = self._covering(offset) or self._fetched(offset)
            if decoded is not None:
                index = int(np.searchsorted(decoded.offsets, offset))
                if decoded.offsets[index] == offset:
                    found[offset] = decoded.batch.slice(index, 1)
        return found

    def close(self) -> None:
        """Release the files."""
        if self._reader is not None:
            self._reader.close()
            self._reader = None

    def _covering(self, offset: int) -> _Decoded | None:
        names = self._columns()
        if names != self._names:  # columns were added: what was decoded lacks them
            self._names, self._bytes = names, 0
            self._recent.clear()
        return next((each for each in self._recent if each.first <= offset <= each.last), None)

    def _remember(self, batch: pa.RecordBatch) -> _Decoded:
        offsets = batch.column("_offset").to_numpy()
        decoded = _Decoded(batch, offsets, int(offsets[0]), int(offsets[-1]))
        self._recent.appendleft(decoded)
        self._bytes += batch.nbytes
        while len(self._recent) > (1 if self._bytes > RECENT_BYTES else RECENT):
            self._bytes -= self._recent.pop().batch.nbytes
        return decoded

    def _fetched(self, offset: int) -> _Decoded | None:
        """Read the block of an offset; None where retention has removed it."""
        try:
            return self._block(offset - offset % BLOCK, offset)
        except OffsetLost as error:
            return self._block(error.earliest, offset) if error.earliest <= offset else None

    def _block(self, first: int, offset: int) -> _Decoded | None:
        reader = self._open(first)
        try:
            while (batch := reader.next()) is not None:
                decoded = self._remember(batch)
                if decoded.last >= offset:
                    return decoded if decoded.first <= offset else None
            return None
        finally:
            reader.close()


class RecordRow(NamedTuple):
    """A record as a message has it."""

    offset: int
    received: int
    value: dict[str, Any]
    headers: Sequence[tuple[str, bytes]]


def record_rows(batch: pa.RecordBatch, columns: Sequence[str]) -> list[RecordRow]:
    """Return the records of a batch, which was read with metadata, as Python values."""
    offsets = batch.column("_offset").to_pylist()
    received = batch.column("_received").view(pa.int64()).to_pylist()
    values = batch.select(columns).to_pylist()
    stored = batch.column("_headers")
    headers: list[Any] = [()] * len(offsets)
    if stored.null_count < len(offsets):
        headers = [each or () for each in stored.to_pylist()]
    return [RecordRow(*each) for each in zip(offsets, received, values, headers, strict=True)]
