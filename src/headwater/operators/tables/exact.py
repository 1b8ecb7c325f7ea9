"""Sums of numbers by group without rounding, to which numbers are added and from which they are taken.

A number is an integer times a power of two: integers, the unscaled values of decimals, and floats too.
A group's sum is a Python integer in the same scale. Rows are added up in bulk first, in pieces of a few
bits that cannot overflow; Python sees each group once for each power of two that its rows have.

Invariant: a sum depends on the numbers that are in it, and not on their order nor on those taken out.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.operators.groups import Numbers

SCALE = 1200
"""Floats are integers times two to the power of this, negative: more than the smallest one needs."""
_PIECE = 27
_SHIFTS = 4096


class Pieces(NamedTuple):
    """Integers, and the powers of two that they are times of."""

    numbers: Numbers
    shifts: Numbers


class Sums:
    """An integer of any size for each group; a group without one has zero."""

    def __init__(self) -> None:
        self._sums: dict[int, int] = {}

    def change(self, groups: Numbers, column: pa.Array, sign: int) -> None:
        """Add the values of a column, none of them null or without a limit, or take them out."""
        for numbers, shifts in _pieces(column):
            cells, of = np.unique(groups * _SHIFTS + shifts, return_inverse=True)
            sums = np.zeros(len(cells), np.int64)
            np.add.at(sums, of, numbers)
            self._add((cells // _SHIFTS).tolist(), (cells % _SHIFTS).tolist(), (sign * sums).tolist())

    def of(self, groups: Numbers) -> list[int]:
        """Return the sums of some groups."""
        return [self._sums.get(group, 0) for group in groups.tolist()]

    def _add(self, groups: list[int], shifts: list[int], sums: list[int]) -> None:
        # Numpy has no integers that are wide enough.
        for group, shift, number in zip(groups, shifts, sums, strict=True):
            total = self._sums.get(group, 0) + (number << shift)
            if total:
                self._sums[group] = total
            else:
                self._sums.pop(group, None)


def _pieces(column: pa.Array) -> list[Pieces]:
    if pa.types.is_floating(column.type):
        return _of_floats(column.cast(pa.float64()).to_numpy(zero_copy_only=False))
    if pa.types.is_decimal(column.type):
        return _of_decimals(column.cast(pa.decimal128(38, column.type.scale)))
    return _cut(column.cast(pa.int64()).to_numpy(zero_copy_only=False), 32, 0)


def _of_floats(floats: np.ndarray[tuple[int], np.dtype[np.float64]]) -> list[Pieces]:
    mantissas, exponents = np.frexp(floats)
    shifts = exponents.astype(np.int64) - 53 + SCALE
    return _cut(np.ldexp(mantissas, 53).astype(np.int64), _PIECE, shifts)


def _of_decimals(column: pa.Array) -> list[Pieces]:
    words = np.frombuffer(column.buffers()[1], np.int64)[2 * column.offset :][: 2 * len(column)]
    low, high = words[::2], words[1::2]
    # The lower word has no sign: its upper half is shifted in as zeros.
    middle = (low.view(np.uint64) >> np.uint64(32)).astype(np.int64)
    pieces = [_piece(low & 0xFFFFFFFF, 0), _piece(middle, 32)]
    return [*pieces, *_cut(high, 32, 64)]


def _cut(numbers: Numbers, bits: int, shift: Numbers | int) -> list[Pieces]:
    """Cut integers in two, so that very many of each part add up to no more than 64 bits."""
    return [_piece(numbers & ((1 << bits) - 1), shift), _piece(numbers >> bits, shift + bits)]


def _piece(numbers: Numbers, shift: Numbers | int) -> Pieces:
    return Pieces(numbers, np.broadcast_to(np.asarray(shift, np.int64), numbers.shape))


def finite(column: pa.Array) -> pa.Array:
    """Tell which values of a column have a place among the numbers; null for null."""
    if pa.types.is_floating(column.type):
        return pc.is_finite(column)
    return pc.is_valid(column)
