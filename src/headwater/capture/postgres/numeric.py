"""Decimal numbers in the binary form of PostgreSQL, as Arrow decimals.

A number is a sign, a weight, and digits of base 10000, each two bytes. All numbers of a column are added up
digit by digit together: in 64 bits where the declared precision fits, else in 128 bits as four limbs of 32.

Invariant: a number comes out with exactly the value that went in, or is told as one that has none.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.capture.postgres.tuples import Cells

_NEGATIVE: Final = 0x4000
_SPECIAL: Final = {0xC000: "NaN", 0xD000: "Infinity", 0xF000: "-Infinity"}
_IN_64_BITS: Final = 18
_LIMBS: Final = 4

Wide = npt.NDArray[np.uint64]


def decimals(cells: Cells, kind: pa.Decimal128Type) -> tuple[pa.Array, dict[int, str]]:
    """Return numbers as decimals, and what those rows have that cannot be one."""
    head = np.where(cells.valid, cells.start, 0)
    sign = cells.buffer.numbers("u2", head + 4).astype(np.int64)
    special = cells.valid & (sign > _NEGATIVE)
    finite = cells.valid & ~special
    negative = finite & (sign == _NEGATIVE)
    unfit = {int(row): _SPECIAL.get(int(sign[row]), "NaN") for row in np.flatnonzero(special)}
    limbs = _limbs(_Digits(cells, finite), kind)
    return _decimal_array(_signed(limbs, negative), finite, kind), unfit


class _Digits:
    """The digits of all numbers, by their power of 10000."""

    def __init__(self, cells: Cells, finite: npt.NDArray[np.bool_]):
        head = np.where(finite, cells.start, 0)
        self._buffer, self._first = cells.buffer, head + 8
        self._count = np.where(finite, cells.buffer.numbers("i2", head), 0).astype(np.int64)
        self._weight = cells.buffer.numbers("i2", head + 2).astype(np.int64)
        self.highest = int(self._weight[self._count > 0].max(initial=-1))

    def of(self, power: int) -> Wide:
        """Return the digit of each number, which is 0 where it has none."""
        at = self._weight - power
        there = (at >= 0) & (at < self._count)
        found = self._buffer.numbers("u2", np.where(there, self._first + 2 * at, 0))
        return np.where(there, found, 0).astype(np.uint64)


def _limbs(digits: _Digits, kind: pa.Decimal128Type) -> list[Wide]:
    """Return the numbers, without sign, times ten to the power of the scale: the lowest limb first."""
    groups, rest = divmod(kind.scale, 4)
    single = kind.precision <= _IN_64_BITS
    total = [np.zeros_like(digits.of(0)) for _ in range(1 if single else _LIMBS)]
    for power in range(max(digits.highest, 0), -groups - 1, -1):
        _shift(total, 10_000, digits.of(power))
    if rest:
        _shift(total, 10**rest, digits.of(-groups - 1) // np.uint64(10 ** (4 - rest)))
    return total


def _shift(limbs: list[Wide], factor: int, digit: Wide) -> None:
    """Multiply by a factor and add a digit, in place."""
    if len(limbs) == 1:
        limbs[0] = limbs[0] * np.uint64(factor) + digit
        return
    carry = digit
    for at, limb in enumerate(limbs):
        value = limb * np.uint64(factor) + carry
        limbs[at], carry = value & np.uint64(0xFFFFFFFF), value >> np.uint64(32)


def _signed(limbs: list[Wide], negative: npt.NDArray[np.bool_]) -> npt.NDArray[np.uint64]:
    """Return numbers as pairs of 64 bits in two's complement, the lower first."""
    low = limbs[0] if len(limbs) == 1 else limbs[0] | (limbs[1] << np.uint64(32))
    high = np.zeros_like(low) if len(limbs) == 1 else limbs[2] | (limbs[3] << np.uint64(32))
    borrow = (low != 0).astype(np.uint64)
    pair = np.empty((len(low), 2), np.uint64)
    pair[:, 0] = np.where(negative, np.uint64(0) - low, low)
    pair[:, 1] = np.where(negative, np.uint64(0) - high - borrow, high)
    return pair


def _decimal_array(pair: npt.NDArray[np.uint64], valid: npt.NDArray[np.bool_], kind: pa.DataType) -> pa.Array:
    bits = np.packbits(valid, bitorder="little")
    return pa.Array.from_buffers(
        kind, len(pair), [pa.py_buffer(bits), pa.py_buffer(np.ascontiguousarray(pair))]
    )
