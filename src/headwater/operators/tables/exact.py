"""Sums of numbers by group without rounding, to which numbers are added and from which they are taken.

A sum is a few columns of its group's row. Integers, and the unscaled values of decimals, are cut into limbs
of 32 bits, which are added up by themselves; floats are digits in base 2**32 (``aggregates/digits.py``).

Invariant: a sum depends on the numbers that are in it, and not on their order nor on those taken out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.operators.aggregates import digits
from headwater.operators.groups import Flags, Numbers
from headwater.operators.memory.value_digits import decimal_words

_BITS = 32
_MASK = np.int64((1 << _BITS) - 1)


class ExactSums(Protocol):
    """How the numbers of one kind of type are added."""

    fields: list[pa.Field]

    def changed(
        self, columns: Sequence[pa.Array], groups: Numbers, values: pa.Array, signs: Numbers
    ) -> list[pa.Array]:
        """Return sums with values added (1) and taken out (-1), none of them null or without a limit."""

    def fractions(self, columns: Sequence[pa.Array]) -> list[tuple[int, int]]:
        """Return each sum as an integer, and the power of two by which it is divided."""


class LimbSums:
    """Sums of integers, or of the unscaled values of decimals."""

    def __init__(self, kind: pa.DataType):
        self._is_decimal = pa.types.is_decimal(kind)
        self.fields = [pa.field(f"limb{place}", pa.int64()) for place in range(4 if self._is_decimal else 2)]

    def changed(
        self, columns: Sequence[pa.Array], groups: Numbers, values: pa.Array, signs: Numbers
    ) -> list[pa.Array]:
        """Add limbs, and carry what is beyond 32 bits of each to the next."""
        carry, made = np.zeros(len(columns[0]), np.int64), []
        limbs = _decimal_limbs(values) if self._is_decimal else _integer_limbs(values)
        for column, limb in zip(columns, limbs, strict=True):
            sums = column.to_numpy() + carry
            np.add.at(sums, groups, signs * limb)
            carry = sums >> _BITS
            made.append(sums & _MASK)
        made[-1] += carry << _BITS  # the last one has the sign, and no next one
        return [pa.array(limb) for limb in made]

    def fractions(self, columns: Sequence[pa.Array]) -> list[tuple[int, int]]:
        """Return the integers, over one."""
        limbs = zip(*(column.to_pylist() for column in columns), strict=True)
        return [(sum(limb << _BITS * n for n, limb in enumerate(each)), 1) for each in limbs]

    def integers(self, columns: Sequence[pa.Array]) -> tuple[Numbers, Flags]:
        """Return the sums of integers, and which of them have no place among those of 64 bits."""
        low, high = (column.to_numpy() for column in columns)
        return (high << _BITS) | low, (high >> (_BITS - 1)) != (high >> 63)


class FloatSums:
    """Sums of floats, digit by digit."""

    def __init__(self) -> None:
        self.fields = digits.fields("sum")

    def changed(
        self, columns: Sequence[pa.Array], groups: Numbers, values: pa.Array, signs: Numbers
    ) -> list[pa.Array]:
        """Add digits."""
        floats, count = values.cast(pa.float64()).to_numpy(zero_copy_only=False) * signs, len(columns[0])
        more = digits.stored(digits.summed(floats, groups, count))
        both = [pa.concat_arrays(pair) for pair in zip(columns, more, strict=True)]
        return digits.stored(digits.merged(both, np.tile(np.arange(count), 2), count))

    def fractions(self, columns: Sequence[pa.Array]) -> list[tuple[int, int]]:
        """Return the numbers, over powers of two."""
        return [
            (number << exponent, 1) if exponent >= 0 else (number, 1 << -exponent)
            for number, exponent in digits.numbers(list(columns))
        ]


def exact_sums(kind: pa.DataType) -> LimbSums | FloatSums:
    """Return how values of a type are added."""
    return FloatSums() if pa.types.is_floating(kind) else LimbSums(kind)


def _integer_limbs(column: pa.Array) -> list[Numbers]:
    numbers = column.cast(pa.int64()).to_numpy(zero_copy_only=False)
    return [numbers & _MASK, numbers >> _BITS]


def _decimal_limbs(column: pa.Array) -> list[Numbers]:
    low, high = decimal_words(column)
    # The lower word has no sign: its upper half is shifted in as zeros.
    middle = (low.view(np.uint64) >> np.uint64(_BITS)).astype(np.int64)
    return [low & _MASK, middle, high & _MASK, high >> _BITS]


def finite(column: pa.Array) -> pa.Array:
    """Tell which values of a column have a place among the numbers; null for null."""
    if pa.types.is_floating(column.type):
        return pc.is_finite(column)
    return pc.is_valid(column)
