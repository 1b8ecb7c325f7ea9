"""The tuples of many messages of one relation, taken apart column by column.

Where a value begins depends on the lengths of all before it in its row, but rows do not depend on each other:
so one column of all rows is looked up at once, then the next. A value is not copied: a cell says where it
lies.

Invariant: the cells of a column begin in the order of their rows, so that their bytes become an Arrow array
of one buffer.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.errors import SourceUnavailable

Bytes = npt.NDArray[np.uint8]
Places = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

NULL, UNCHANGED, TEXT, BINARY = b"nutb"
PADDING = b"\0" * 32
"""What must be behind the last message, so that no fixed offset into it is behind the end."""


class Buffer:
    """Bytes that numbers are read from at many places at once."""

    def __init__(self, data: bytes):
        self.data = data

    @cached_property
    def bytes(self) -> Bytes:
        """The single bytes."""
        return np.frombuffer(self.data, np.uint8)

    def numbers(self, code: str, at: Places) -> npt.NDArray[np.generic]:
        """Return the numbers of a type, in network order, that lie at some places."""
        kind = np.dtype(f">{code}")
        every = np.ndarray((max(len(self.data) - kind.itemsize + 1, 0),), kind, self.data, strides=(1,))
        return every[at].astype(kind.newbyteorder("="))


@dataclass(frozen=True)
class Cells:
    """One column of many tuples: where each value lies in the buffer, and in which form it is there."""

    buffer: Buffer
    kind: Bytes
    start: Places
    length: Places

    def __len__(self) -> int:
        return len(self.kind)

    @cached_property
    def valid(self) -> Flags:
        """Whether there is a value, of each."""
        return _valued(self.kind)

    @cached_property
    def missing(self) -> Flags | None:
        """Whether there is none, of each; None where every one has a value."""
        return None if self.valid.all() else ~self.valid

    @property
    def placed(self) -> Places:
        """Where each value lies; somewhere, of those that have none."""
        return self.start if self.missing is None else np.where(self.valid, self.start, 0)

    def only(self, rows: Places | Flags) -> Cells:
        """Return the cells of some rows, in their order."""
        return Cells(self.buffer, self.kind[rows], self.start[rows], self.length[rows])

    def behind(self, offset: int) -> Cells:
        """Return the same values without their first bytes."""
        size = np.where(self.valid, offset, 0)
        return Cells(self.buffer, self.kind, self.start + size, self.length - size)

    def binary(self) -> pa.BinaryArray:
        """Return the bytes of the values, of which nulls and unchanged ones have none."""
        count = len(self)
        if not count:
            return pa.array([], pa.binary())
        offsets = np.empty(2 * count, np.int32)  # of the values, and of what lies between them
        offsets[0::2], offsets[1::2] = self.start, self.start + self.length
        valid = np.packbits(np.repeat(self.valid, 2), bitorder="little")
        buffers = [pa.py_buffer(valid), pa.py_buffer(offsets), pa.py_buffer(self.buffer.data)]
        both = pa.Array.from_buffers(pa.binary(), 2 * count - 1, buffers)
        return both.take(pa.array(np.arange(0, 2 * count, 2)))


@dataclass(frozen=True)
class Tuples:
    """Many tuples of one relation: their columns, and where each tuple ends."""

    columns: tuple[Cells, ...]
    end: Places


def split(buffer: Buffer, at: Places, columns: int) -> Tuples:
    """Take tuples of ``pgoutput`` apart, each of which begins with the number of its columns."""
    _check(buffer, at, columns)
    place, found = at + 2, []
    for _ in range(columns):
        kind = buffer.bytes[place]
        valued = _valued(kind)
        length = np.where(valued, _lengths(buffer, place + 1), 0)
        start = place + 1 + 4 * valued
        found.append(Cells(buffer, kind, start, length))
        place = start + length
    return Tuples(tuple(found), place)


def split_copied(buffer: Buffer, at: Places, columns: int) -> Tuples:
    """Take rows of a binary ``COPY`` apart."""
    _check(buffer, at, columns)
    place, found = at + 2, []
    for _ in range(columns):
        length = _lengths(buffer, place)
        kind = np.where(length < 0, NULL, BINARY).astype(np.uint8)
        length = np.maximum(length, 0)
        found.append(Cells(buffer, kind, place + 4, length))
        place = place + 4 + length
    return Tuples(tuple(found), place)


def filled(new: Cells, old: Cells, rows: Places) -> Cells:
    """Return cells in which what is unchanged is taken from older ones, which are those of some rows."""
    taken = (new.kind[rows] == UNCHANGED) & old.valid
    if not taken.any():
        return new
    kind, start, length = new.kind.copy(), new.start.copy(), new.length.copy()
    at = rows[taken]
    kind[at], start[at], length[at] = old.kind[taken], old.start[taken], old.length[taken]
    return Cells(new.buffer, kind, start, length)


def _valued(kind: Bytes) -> Flags:
    found: Flags = (kind == TEXT) | (kind == BINARY)
    return found


def _lengths(buffer: Buffer, at: Places) -> Places:
    return buffer.numbers("i4", at).astype(np.int64)


def _check(buffer: Buffer, at: Places, columns: int) -> None:
    if (buffer.numbers("i2", at) != columns).any():
        raise SourceUnavailable(
            "PostgreSQL has sent a row that does not fit its table",
            detail=f"the table has {columns} columns",
            hint="start the capture again; if it stays so, report it",
        )
